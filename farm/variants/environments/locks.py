"""Locks of folders that one process makes and several use: environments, and bundles of programs."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from farm.core.errors import InvalidInput


@contextmanager
def lock_file(folder: Path) -> Iterator[IO[str]]:
    """Open the file whose locks say who uses (shared) or makes (exclusive) a folder.

    Raises:
        InvalidInput: it cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = (folder.parent / f"{folder.name}.lock").open("w")
    except OSError as error:
        raise InvalidInput(
            f"cannot write {folder.parent}: {error.strerror}", hint="XDG_CACHE_HOME sets another folder"
        ) from error
    with file:
        yield file


def wait_for_lock(file: IO[str], mode: int, on_wait: Callable[[], None]) -> None:
    """Take a lock of the file, `fcntl.LOCK_SH` or `LOCK_EX`; call `on_wait` where another process has it."""
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        on_wait()
        fcntl.flock(file, mode)
