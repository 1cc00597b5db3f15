"""Durable file writes: after a power cut a file has its old or its new content, never a part."""

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from farm.core.errors import HostDiskFull

Arguments = TypeVarTuple("Arguments")
Value = TypeVar("Value")

TEMPORARY_SUFFIX = ".tmp"


def write_file_durably(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write `data` to `path` atomically and sync it to disk, including the directory entry.

    Raises:
        HostDiskFull: no space is left, and the old content stays.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    with translate_disk_errors(path):
        try:
            _write_synced(temporary, data, mode)
        except OSError:
            # On a full disk a partial file would only take space.
            temporary.unlink(missing_ok=True)
            raise
        temporary.replace(path)
        sync_folder(path.parent)


def _write_synced(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def remove_durably(path: Path) -> None:
    """Remove a file and sync its directory; a missing file is ignored."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that added and removed names survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep_temporaries(folder: Path) -> None:
    """Remove temporary files of writers that died before their rename."""
    for leftover in folder.glob(f"*{TEMPORARY_SUFFIX}"):
        leftover.unlink(missing_ok=True)


@contextmanager
def translate_disk_errors(path: Path) -> Iterator[None]:
    """Translate a full disk into an error of the tree."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise HostDiskFull(f"no space left for {path.name} in {path.parent}") from error
        raise


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
