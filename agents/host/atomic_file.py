"""Durable file writes, after which a file has its old or its new content, never a part; threads for files."""

import asyncio
import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from farm.core.base.ids import Digest
from farm.core.base.units import size_text
from farm.core.errors import HostDiskFailed, HostDiskFull

Arguments = TypeVarTuple("Arguments")
Value = TypeVar("Value")

TEMPORARY_SUFFIX = ".tmp"
QUARANTINED_SUFFIX = ".unreadable"


def write_file_durably(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write `data` to `path` atomically and sync it to disk, including the directory entry.

    Raises:
        HostDiskFull: no space is left, or the disk takes no writes (HostDiskFailed); the old content stays.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    with translate_disk_errors(path, len(data)):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError:
            # On a full disk a partial file would only take space.
            with suppress(OSError):
                temporary.unlink()
            raise
        temporary.replace(path)
        sync_path(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, unless it is there; raises HostDiskFull."""
    with translate_disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)


def remove_durably(path: Path) -> None:
    """Remove a file and sync its directory; a missing file is ignored. Raises HostDiskFailed."""
    with translate_disk_errors(path):
        path.unlink(missing_ok=True)
        sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Sync a file, or a folder, so that added and removed names survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sealed(data: bytes) -> bytes:
    """Return the content of a file that carries the digest of its data in its first line."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}\n".encode() + data


def unsealed(content: bytes) -> bytes | None:
    """Return the data of a sealed file; None if any byte of it has changed."""
    data = content.partition(b"\n")[2]
    return data if sealed(data) == content else None


def quarantine(path: Path) -> None:
    """Rename an unreadable file, or a folder in its place; without success it is skipped at each start."""
    with suppress(OSError):
        path.replace(path.with_suffix(QUARANTINED_SUFFIX))


def sweep_temporaries(folder: Path) -> None:
    """Remove temporary files of writers that died before their rename."""
    for temporary in folder.glob(f"*{TEMPORARY_SUFFIX}"):
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def translate_disk_errors(path: Path, size_bytes: int = 0) -> Iterator[None]:
    """Translate the errors of a full, broken or read-only disk into errors of the tree.

    `size_bytes` is what the file needs; 0 where it is unknown, or only a name was to be added.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            needs = f", which needs {size_text(size_bytes)}," if size_bytes else ""
            raise HostDiskFull(f"no space left for {path.name}{needs} in {path.parent}") from error
        if error.errno in (errno.EIO, errno.EROFS):
            raise HostDiskFailed(f"{path} cannot be written: {error.strerror}") from error
        raise


def is_full(error: OSError) -> bool:
    """Return whether an error means that a disk, or its owner's quota, is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class DiskThread:
    """A single thread for the agent's durable disk writes, so that the event loop never blocks on fsync.

    Invariant: calls run one at a time, in the order they were made.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="agent-disk")

    async def call(self, action: Callable[[*Arguments], Value], *arguments: *Arguments) -> Value:
        """Run a blocking call in the thread; raises what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, action, *arguments)

    def close(self) -> None:
        """Wait for the pending calls and stop the thread."""
        self._executor.shutdown(wait=True)


# Not the event loop's default pool, which resolves host names: a heartbeat must not wait for a disk.
#: More threads only cause disk seeks; devices of one host share its USB controllers, too.
_POOL = ThreadPoolExecutor(max_workers=8, thread_name_prefix="agent-files")


async def run_in_io_pool(action: Callable[[*Arguments], Value], *arguments: *Arguments) -> Value:
    """Run a blocking file operation in the pool; raises what it raises."""
    return await asyncio.get_running_loop().run_in_executor(_POOL, action, *arguments)


def file_digest(path: Path) -> Digest:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return Digest(hashlib.file_digest(stream, "sha256").hexdigest())
