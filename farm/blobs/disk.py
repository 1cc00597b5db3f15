"""Artifacts as files of a folder, each named by its digest."""

import asyncio
import contextlib
import errno
import os
import shutil
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from farm.blobs.copy import artifact_path, has_digest
from farm.blobs.staging import StagedFile, arrived_bytes, remove_abandoned, remove_upload
from farm.core.base.ids import Digest, digest_of, is_digest
from farm.core.base.units import size_text
from farm.core.errors import FarmDiskFull, FarmFault, InputTooLarge, UploadInterrupted
from farm.wire.content_range import ContentRange

#: An upload without data for this long counts as broken off.
STILL_S = 30.0
_CHECK_EVERY_BYTES = 64 * 1024 * 1024
_DAMAGED_SUFFIX = ".damaged"
#: Inode, size and time of the last change.
_FileIdentity = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file under its digest's name, as the disk has it, whether or not a row has it."""

    digest: Digest
    size_bytes: int
    #: Time it was stored, by the disk's clock.
    modified_s: float


class DiskBlobs:
    """A folder of artifacts. A file under its digest's name is complete and verified, or it is not there."""

    def __init__(self, folder: Path, *, reserve_bytes: int = 0) -> None:
        """Open a folder; single-request uploads of an earlier process are removed.

        Args:
            folder: made when missing.
            reserve_bytes: free space that uploads leave on the disk.
        """
        self.folder = folder
        self.reserve_bytes = reserve_bytes
        self._arriving, self._trash = folder / "incoming", folder / "trash"
        self._partial = folder / "partial"
        #: The files that were read and found damaged.
        self._damaged: dict[Digest, _FileIdentity] = {}
        for subfolder in (self._arriving, self._trash, self._partial):
            subfolder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(self._arriving)

    def path(self, digest: Digest) -> Path:
        """Return the path of an artifact, whether or not it is there."""
        return artifact_path(self.folder, digest)

    def size_bytes(self, digest: Digest) -> int | None:
        """Return the bytes of an artifact; None when it is not here."""
        path = self.path(digest)
        return path.stat().st_size if path.is_file() else None

    def find(self, digest: Digest) -> BinaryIO | None:
        """Open an artifact's file: it can be read to its end even if it is removed in between."""
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError:
            return None

    def digests(self) -> set[Digest]:
        """Return all artifacts. Reads the names of the whole folder, and asks for no file's size or time."""
        digests: set[Digest] = set()
        for subfolder in self.folder.glob("??"):
            with os.scandir(subfolder) as entries:
                digests.update(Digest(entry.name) for entry in entries if is_digest(entry.name))
        return digests

    def stored_file(self, digest: Digest) -> StoredFile | None:
        """Return an artifact's file with its size and time, or None when it is not here."""
        try:
            return _stored_file(self.path(digest))
        except FileNotFoundError:
            return None

    def set_aside(self, digest: Digest, at: datetime) -> bool:
        """Move an artifact into the trash; False when it is not there. Quick: one rename."""
        path = self.path(digest)
        with contextlib.suppress(FileNotFoundError):
            os.utime(path, (at.timestamp(), at.timestamp()))
        return _move(path, self._trash / digest)

    def set_damaged_aside(self, digest: Digest, at: datetime) -> bool:
        """Move a file whose bytes were read and have another digest into the trash, under another name.

        False when it is not there, or was replaced since.
        """
        path, seen = self.path(digest), self._damaged.pop(digest, None)
        if seen is None or _identity(path) != seen:
            return False
        os.utime(path, (at.timestamp(), at.timestamp()))
        return _move(path, self._trash / f"{digest}{_DAMAGED_SUFFIX}")

    def is_damaged(self, digest: Digest) -> bool:
        """Return whether an artifact is here with other bytes than its digest says. Blocking: reads them."""
        path = self.path(digest)
        seen = _identity(path)
        try:
            if seen is None or has_digest(path, digest):
                return False
        except FileNotFoundError:
            return False
        self._damaged[digest] = seen
        return True

    def restore(self, digest: Digest) -> bool:
        """Move an artifact from the trash back into its place; False when it is not there."""
        return _move(self._trash / digest, self.path(digest))

    def trash(self) -> list[StoredFile]:
        """Return the artifacts in the trash, oldest first; `modified_s` is when each was set aside."""
        files: list[StoredFile] = []
        for path in self._trash.iterdir():
            with contextlib.suppress(FileNotFoundError):
                files.append(_stored_file(path))
        return sorted(files, key=lambda file: file.modified_s)

    def empty_trash(self, before_s: float, *, room_bytes: int = 0) -> list[int]:
        """Remove what was set aside before a time; return the bytes of each.

        While the disk has less free than the reserve and `room_bytes`, more is removed, oldest first.
        """
        freed_bytes: list[int] = []
        for file in self.trash():
            has_room = self.free_bytes() - room_bytes >= self.reserve_bytes
            if has_room and file.modified_s >= before_s:
                break
            for name in (file.digest, f"{file.digest}{_DAMAGED_SUFFIX}"):
                (self._trash / name).unlink(missing_ok=True)
            freed_bytes.append(file.size_bytes)
        return freed_bytes

    def free_bytes(self) -> int:
        """Return the free bytes of the disk."""
        return shutil.disk_usage(self.folder).free

    def check_space(self, size_bytes: int) -> None:
        """Refuse bytes that would not leave the reserve free, even without the trash.

        Raises:
            FarmDiskFull: they would not.
        """
        self.empty_trash(before_s=0.0, room_bytes=size_bytes)
        free_bytes = self.free_bytes()
        if free_bytes - size_bytes < self.reserve_bytes:
            raise FarmDiskFull(
                f"the farm's disk has {size_text(free_bytes)} free, of which {size_text(self.reserve_bytes)}"
                f" are reserved: no space for {size_text(size_bytes)}"
            )

    def put(self, chunks: Iterable[bytes], digest: Digest) -> int:
        """Store bytes under a digest; return their number.

        Raises:
            DigestMismatch: the bytes have another digest; nothing is stored.
            FarmFault: the disk is full (FarmDiskFull) or broken; nothing is stored.
        """
        with self._disk_errors(digest), contextlib.closing(StagedFile.private(self._arriving)) as incoming:
            for chunk in chunks:
                incoming.write(chunk)
            return incoming.commit(digest, self.path(digest))

    async def put_stream(
        self,
        chunks: AsyncIterable[bytes],
        digest: Digest,
        *,
        uploader: str,
        limit_bytes: int,
        part: ContentRange | None = None,
    ) -> int | None:
        """Store the body of a request, which may be a part only; None when the rest is to come.

        An upload that breaks off leaves the arrived bytes, for the same uploader to resume. Of two
        simultaneous uploads of the same bytes, one is written beside the other.

        Raises:
            DigestMismatch: the bytes have another digest; nothing is stored.
            InputTooLarge: there are more of them than allowed, or than in `part`.
            UploadInterrupted: it does not begin where the last one ended, or stalled for too long.
            FarmFault: the disk is full (FarmDiskFull) or broken.
        """
        first = part.first if part else 0
        end_bytes = part.last + 1 if part else limit_bytes
        checked_bytes = first
        with self._disk_errors(digest), self._resume_upload(uploader, digest, first) as incoming:
            await asyncio.to_thread(incoming.resume_at, first)
            async for chunk in _with_stall_timeout(chunks):
                if incoming.size_bytes + len(chunk) > end_bytes:
                    incoming.discard()
                    raise InputTooLarge(f"more than {end_bytes} bytes were sent")
                incoming.write(chunk)
                # Checked whatever size was announced, because others write to the disk as well.
                if incoming.size_bytes - checked_bytes > _CHECK_EVERY_BYTES:
                    checked_bytes = incoming.size_bytes
                    self.check_space(0)
            if part and incoming.size_bytes < part.total_bytes:
                return None
            # Off the event loop: a sync takes as long as the disk does.
            return await asyncio.to_thread(incoming.commit, digest, self.path(digest))

    def arrived_bytes(self, uploader: str, digest: Digest) -> int:
        """Return how many bytes of someone's interrupted upload have arrived."""
        return arrived_bytes(self._uploads_of(uploader), digest)

    def arriving(self, uploader: str) -> dict[Digest, int]:
        """Return the bytes that have arrived of each upload of someone that has not ended."""
        folder = self._uploads_of(uploader)
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return {Digest(name): arrived_bytes(folder, Digest(name)) for name in names if is_digest(name)}

    def drop_upload(self, uploader: str, digest: Digest) -> int:
        """Remove what has arrived of someone's interrupted upload; return its bytes, 0 while it is sent."""
        return remove_upload(self._uploads_of(uploader), digest)

    def expire_uploads(self, before_s: float) -> list[int]:
        """Remove the uploads that were not resumed since then; return the bytes of each."""
        return remove_abandoned(self._partial, before_s=before_s)

    def _uploads_of(self, uploader: str) -> Path:
        """Return the folder of someone's uploads; its name is as long for every uploader."""
        return self._partial / digest_of(uploader.encode())

    @contextlib.contextmanager
    def _resume_upload(self, uploader: str, digest: Digest, first: int) -> Iterator[StagedFile]:
        folder = self._uploads_of(uploader)
        folder.mkdir(exist_ok=True)
        incoming = StagedFile.resumable(folder, digest)
        if incoming is None:
            if first > 0:
                raise UploadInterrupted(f"artifact {digest} is being uploaded by another client")
            incoming = StagedFile.private(self._arriving)
        with contextlib.closing(incoming):
            yield incoming

    @contextlib.contextmanager
    def _disk_errors(self, digest: Digest) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            kind = FarmDiskFull if full else FarmFault
            raise kind(
                f"artifact {digest} cannot be stored: {error.strerror or error}",
                hint="free space in the farm's data folder",
            ) from error


async def _with_stall_timeout(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a body, with a time-out: a silent client must not block others for ever."""
    waiting = aiter(chunks)
    while True:
        try:
            async with asyncio.timeout(STILL_S):
                chunk = await anext(waiting)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise UploadInterrupted(f"no data for {STILL_S:g} s") from error
        yield chunk


def _stored_file(path: Path) -> StoredFile:
    state = path.stat()
    return StoredFile(digest=Digest(path.stem), size_bytes=state.st_size, modified_s=state.st_mtime)


def _identity(path: Path) -> _FileIdentity | None:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


def _move(source: Path, target: Path) -> bool:
    target.parent.mkdir(exist_ok=True)
    try:
        source.replace(target)
    except FileNotFoundError:
        return False
    return True
