"""Artifacts as files of a folder, each named by its digest."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncIterable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from farm.core.errors import DigestMismatch, FarmTrouble, InvalidInput
from farm.core.ids import Digest


class DiskBlobs:
    """A folder of artifacts. A file under its digest's name is whole and verified, or it is not there."""

    def __init__(self, folder: Path) -> None:
        """Open a folder; what an earlier life did not finish receiving is removed."""
        self.folder = folder
        incoming = folder / "incoming"
        incoming.mkdir(parents=True, exist_ok=True)
        for left in incoming.iterdir():
            left.unlink()

    def path(self, digest: Digest) -> Path:
        """Where an artifact is, or would be."""
        return self.folder / digest[:2] / digest

    def size_bytes(self, digest: Digest) -> int | None:
        """Bytes of an artifact; None when it is not here."""
        path = self.path(digest)
        return path.stat().st_size if path.is_file() else None

    def put(self, chunks: Iterable[bytes], digest: Digest) -> int:
        """Store bytes under a digest; their number.

        Raises:
            DigestMismatch: the bytes have another digest; nothing is kept.
            FarmTrouble: the disk is full or broken; nothing is kept.
        """
        with self._incoming(digest) as incoming:
            for chunk in chunks:
                incoming.write(chunk)
            return incoming.commit()

    async def put_stream(self, chunks: AsyncIterable[bytes], digest: Digest, *, limit_bytes: int) -> int:
        """As `put`, from a request's body.

        Raises:
            DigestMismatch: the bytes have another digest; nothing is kept.
            InvalidInput: there are more of them than allowed.
            FarmTrouble: the disk is full or broken; nothing is kept.
        """
        with self._incoming(digest) as incoming:
            async for chunk in chunks:
                incoming.write(chunk)
                if incoming.size_bytes > limit_bytes:
                    raise InvalidInput(f"an artifact has at most {limit_bytes} bytes")
            # Off the event loop: waiting for the disk takes as long as the disk does.
            return await asyncio.to_thread(incoming.commit)

    @contextmanager
    def _incoming(self, digest: Digest) -> Iterator["_Incoming"]:
        try:
            incoming = _Incoming(self, digest)
            try:
                yield incoming
            finally:
                incoming.discard()
        except OSError as error:
            raise FarmTrouble(
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


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
