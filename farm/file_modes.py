"""Data folders and files that only the farm's own user can read, whatever the umask of who starts it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def owner_only_files() -> Iterator[None]:
    """Create files with mode 0600 and folders with 0700; of the whole process and of those that it starts."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def close_folder(folder: Path) -> None:
    """Take the permissions of others from a folder, where this user may and its file system has any.

    Raises:
        OSError: the folder is not there.
    """
    mode = folder.stat().st_mode
    if mode & 0o077:
        with suppress(OSError):
            folder.chmod(mode & 0o700)
