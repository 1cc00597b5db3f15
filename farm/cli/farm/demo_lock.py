"""A lock that lets only one demo use a data folder at a time, as a demo stops the farm that it started."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from farm.daemon import make_data_folder

#: Locked by a running demo; the kernel releases the lock with the process.
LOCK_FILE = "demo.lock"


@contextmanager
def demo_lock(folder: Path, notify: Callable[[str], None]) -> Iterator[None]:
    """Hold the demo lock of a folder during the block; notify if another demo holds it.

    Raises:
        InvalidInput: the folder cannot be used.
    """
    make_data_folder(folder)
    with (folder / LOCK_FILE).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            notify(f"Another demo is running in {folder}; waiting until it ends. Ctrl-C cancels.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
