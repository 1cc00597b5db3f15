"""Demos of one data folder take turns: the farm that a demo started ends with it, whoever uses it besides."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from farm.daemon import make_data_folder

#: Locked by a demo that is under way; the kernel drops the lock with its process.
LOCK_FILE = "demo.lock"


@contextmanager
def demo_lock(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Be the only demo of a folder while the block runs; says so when another one comes first.

    Raises:
        InvalidInput: the folder cannot be used.
    """
    make_data_folder(folder)
    with (folder / LOCK_FILE).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Another demo is under way in {folder}; this one begins when that has ended. Ctrl-C leaves.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
