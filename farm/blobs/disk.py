"""Artifacts as files of a folder, each named by its digest."""

import asyncio
import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import AsyncIterable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from farm.core.errors import DigestMismatch, FarmDiskFull, FarmTrouble, TooLarge
from farm.core.ids import Digest, is_digest
from farm.core.units import size_text

_CHECK_EVERY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file under its digest's name, whether or not any row knows it."""

    digest: Digest
    size_bytes: int
    #: When it was put there, by the disk's clock.
    modified_s: float


class DiskBlobs:
    """A folder of artifacts. A file under its digest's name is whole and verified, or it is not there."""

    def __init__(self, folder: Path, *, reserve_bytes: int = 0) -> None:
        """Open a folder; what an earlier life did not finish receiving, or removing, is removed.

        Args:
            folder: made when missing.
            reserve_bytes: what uploads leave free on the disk.
        """
        self.folder = folder
        self.reserve_bytes = reserve_bytes
        self._leaving = folder / "leaving"
        for passing in (folder / "incoming", self._leaving):
            passing.mkdir(parents=True, exist_ok=True)
            for left in passing.iterdir():
                left.unlink()

    def path(self, digest: Digest) -> Path:
        """Where an artifact is, or would be."""
        return self.folder / digest[:2] / digest

    def size_bytes(self, digest: Digest) -> int | None:
        """Bytes of an artifact; None when it is not here."""
        path = self.path(digest)
        return path.stat().st_size if path.is_file() else None

    def files(self) -> Iterator[StoredFile]:
        """All artifacts that are here, in no order; reads the whole folder."""
        for shelf in self.folder.glob("??"):
            for path in shelf.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    if is_digest(path.name):
                        yield _stored_file(path)

    def set_aside(self, digest: Digest) -> bool:
        """Take an artifact out of its place, to be removed; False when it is not there. Quick: one rename."""
        return _moved(self.path(digest), self._leaving / digest)

    def take_back(self, digest: Digest) -> bool:
        """Put an artifact that was set aside back into its place; False when it is removed already."""
        return _moved(self._leaving / digest, self.path(digest))

    def remove_set_aside(self) -> int:
        """Remove what was set aside; the bytes that were freed."""
        freed_bytes = 0
        for path in self._leaving.iterdir():
            with contextlib.suppress(FileNotFoundError):
                size_bytes = path.stat().st_size
                path.unlink()
                freed_bytes += size_bytes
        return freed_bytes

    def free_bytes(self) -> int:
        """What the disk has left for anybody."""
        return shutil.disk_usage(self.folder).free

    def check_room(self, size_bytes: int) -> None:
        """Refuse bytes that would not leave the reserve free.

        Raises:
            FarmDiskFull: so it is.
        """
        free_bytes = self.free_bytes()
        if free_bytes - size_bytes < self.reserve_bytes:
            raise FarmDiskFull(
                f"the farm's disk has {size_text(free_bytes)} free, of which {size_text(self.reserve_bytes)}"
                f" are kept back: no room for {size_text(size_bytes)}"
            )

    def put(self, chunks: Iterable[bytes], digest: Digest) -> int:
        """Store bytes under a digest; their number.

        Raises:
            DigestMismatch: the bytes have another digest; nothing is kept.
            FarmTrouble: the disk is full (FarmDiskFull) or broken; nothing is kept.
        """
        with self._incoming(digest) as incoming:
            for chunk in chunks:
                incoming.write(chunk)
            return incoming.commit()

    async def put_stream(self, chunks: AsyncIterable[bytes], digest: Digest, *, limit_bytes: int) -> int:
        """As `put`, from a request's body.

        Raises:
            DigestMismatch: the bytes have another digest; nothing is kept.
            TooLarge: there are more of them than allowed.
            FarmTrouble: the disk is full (FarmDiskFull) or broken; nothing is kept.
        """
        checked_bytes = 0
        with self._incoming(digest) as incoming:
            async for chunk in chunks:
                incoming.write(chunk)
                if incoming.size_bytes > limit_bytes:
                    raise TooLarge(f"an artifact has at most {limit_bytes} bytes")
                # Whatever was announced, or others do to the disk meanwhile.
                if incoming.size_bytes - checked_bytes > _CHECK_EVERY_BYTES:
                    checked_bytes = incoming.size_bytes
                    self.check_room(0)
            # Off the event loop: waiting for the disk takes as long as the disk does.
            return await asyncio.to_thread(incoming.commit)

    @contextlib.contextmanager
    def _incoming(self, digest: Digest) -> Iterator["_Incoming"]:
        try:
            incoming = _Incoming(self, digest)
            try:
                yield incoming
            finally:
                incoming.discard()
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            kind = FarmDiskFull if full else FarmTrouble
            raise kind(
                f"artifact {digest} cannot be stored: {error.strerror or error}",
                hint="free space in the farm's data folder",
            ) from error


class _Incoming:
    """A file on its way in, under a name of its own until its digest is right."""

    def __init__(self, blobs: DiskBlobs, digest: Digest) -> None:
        self._blobs = blobs
        self._digest = digest
        self._path = blobs.folder / "incoming" / secrets.token_hex(8)
        self._file = self._path.open("wb")
        self._sha256 = hashlib.sha256()
        self.size_bytes = 0

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._sha256.update(chunk)
        self.size_bytes += len(chunk)

    def commit(self) -> int:
        actual = self._sha256.hexdigest()
        if actual != self._digest:
            raise DigestMismatch(
                f"announced as {self._digest}, but the {self.size_bytes} bytes have {actual}"
            )
        self._file.flush()
        os.fsync(self._file.fileno())
        target = self._blobs.path(self._digest)
        target.parent.mkdir(exist_ok=True)
        self._path.replace(target)
        # The database will say that the file is there: its name must be on disk by then, too.
        _sync_folder(target.parent)
        _sync_folder(self._blobs.folder)
        return self.size_bytes

    def discard(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


def _stored_file(path: Path) -> StoredFile:
    state = path.stat()
    return StoredFile(digest=Digest(path.name), size_bytes=state.st_size, modified_s=state.st_mtime)


def _moved(source: Path, target: Path) -> bool:
    target.parent.mkdir(exist_ok=True)
    try:
        source.replace(target)
    except FileNotFoundError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
