"""Files being received: under a temporary name until their digest is verified."""

import fcntl
import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from farm.core.base.ids import Digest
from farm.core.errors import DigestMismatch, UploadInterrupted

_READ_BYTES = 1024 * 1024


class StagedFile:
    """One file being received, owned by the holder of its lock.

    Invariant: only the owner writes to it, in this process or another, so that the verified bytes get its
    name.
    """

    def __init__(self, path: Path, file: BinaryIO, *, is_resumable: bool) -> None:
        """Construct by `private` or `resumable`."""
        self._path = path
        self._file = file
        self._is_resumable = is_resumable
        self._is_committed = False
        self._sha256 = hashlib.sha256()
        self.size_bytes = 0

    @classmethod
    def private(cls, folder: Path) -> Self:
        """Return a file of the caller's own, which is removed if it is not committed."""
        path = folder / secrets.token_hex(8)
        file = path.open("x+b")
        fcntl.flock(file, fcntl.LOCK_EX)
        return cls(path, file, is_resumable=False)

    @classmethod
    def resumable(cls, folder: Path, digest: Digest) -> Self | None:
        """Return the file in which an upload of a digest can be resumed; None while another caller has it."""
        path = folder / digest
        file = path.open("a+b")
        if _try_lock(file) and _is_same(path, file):
            return cls(path, file, is_resumable=True)
        file.close()
        return None

    def resume_at(self, offset_bytes: int) -> None:
        """Keep the bytes there, if there are exactly so many; from 0, begin again. Blocking: reads them.

        Raises:
            UploadInterrupted: there are more or fewer than that.
        """
        there_bytes = os.fstat(self._file.fileno()).st_size
        if offset_bytes not in (0, there_bytes):
            raise UploadInterrupted(
                f"the farm has {there_bytes} bytes, the request continues at {offset_bytes}"
            )
        self._file.truncate(offset_bytes)
        self._file.seek(0)
        while chunk := self._file.read(_READ_BYTES):
            self._sha256.update(chunk)
        self.size_bytes = offset_bytes

    def write(self, chunk: bytes) -> None:
        """Append bytes."""
        self._file.write(chunk)
        self._sha256.update(chunk)
        self.size_bytes += len(chunk)

    def commit(self, digest: Digest, target: Path) -> int:
        """Give the file its name; return its size. Blocking: waits for the disk.

        Raises:
            DigestMismatch: its bytes have another digest; it is removed.
        """
        self.discard()
        actual = self._sha256.hexdigest()
        if actual != digest:
            raise DigestMismatch(f"announced as {digest}, but the {self.size_bytes} bytes have {actual}")
        self._file.flush()
        os.fsync(self._file.fileno())
        target.parent.mkdir(exist_ok=True)
        self._path.replace(target)
        self._is_committed = True
        # The database will record that the file is there: its name must be on disk by then, too.
        _sync_folder(target.parent)
        _sync_folder(target.parent.parent)
        return self.size_bytes

    def discard(self) -> None:
        """Remove the file at the end of this request: it cannot be resumed."""
        self._is_resumable = False

    def close(self) -> None:
        """Release the lock; the bytes stay where the upload can be resumed."""
        with suppress(OSError):
            self._file.flush()
        # After the rename, the temporary name may be another upload's.
        if not self._is_committed and not (self._is_resumable and os.fstat(self._file.fileno()).st_size):
            self._path.unlink(missing_ok=True)
        self._file.close()


def arrived_bytes(folder: Path, digest: Digest) -> int:
    """Return how many bytes of a resumable upload there are; 0 without one."""
    try:
        return (folder / digest).stat().st_size
    except FileNotFoundError:
        return 0


def remove_abandoned(folder: Path, *, before_s: float | None = None) -> list[int]:
    """Remove files that are not being received, all or those written before; return the bytes of each.

    Files of folders in the folder count, too.
    """
    freed_bytes: list[int] = []
    for path in folder.iterdir():
        if path.is_dir():
            freed_bytes += remove_abandoned(path, before_s=before_s)
            continue
        freed_bytes += _remove_unlocked(path, before_s)
    return freed_bytes


def remove_upload(folder: Path, digest: Digest) -> int:
    """Remove a resumable upload that is not being received; return its bytes, 0 where there is none."""
    return sum(_remove_unlocked(folder / digest, None))


def _remove_unlocked(path: Path, before_s: float | None) -> list[int]:
    """Remove a file that no one is writing; return its bytes, or nothing."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        state = os.fstat(file.fileno())
        if (before_s is None or state.st_mtime < before_s) and _try_lock(file) and _is_same(path, file):
            path.unlink()
            return [state.st_size]
    return []


def _try_lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same(path: Path, file: BinaryIO) -> bool:
    """Return whether the name still is this file's: it may have been committed before the lock was taken."""
    try:
        at_path, opened = path.stat(), os.fstat(file.fileno())
    except FileNotFoundError:
        return False
    return (at_path.st_dev, at_path.st_ino) == (opened.st_dev, opened.st_ino)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
