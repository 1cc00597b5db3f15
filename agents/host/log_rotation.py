"""Rotation of files that other processes write, with one older part: `phone.log` and `phone.log.1`."""

import os
import shutil
from contextlib import suppress
from pathlib import Path


def rotate(path: Path) -> None:
    """Make a file the older part, where its writer, if there is one, goes on writing."""
    with suppress(FileNotFoundError):
        path.replace(rotated_path(path))


def rotate_if_over(path: Path, limit_bytes: int) -> bool:
    """Rotate a file that is over the limit; return whether it was."""
    if not _is_over(path, limit_bytes):
        return False
    rotate(path)
    return True


def copy_and_truncate_if_over(path: Path, limit_bytes: int) -> bool:
    """Copy a file that is over the limit to the older part, and empty it; return whether it was.

    For a file that its writer keeps open, in append mode: in another mode it would leave a hole as large as
    what was there. What is written between the copy and the truncation is lost. A copy that fails, on a full
    disk say, is given up, and the file is emptied nevertheless.
    """
    if not _is_over(path, limit_bytes):
        return False
    draft = path.with_name(f"{path.name}.new")
    try:
        shutil.copyfile(path, draft)
        draft.replace(rotated_path(path))
    except OSError:
        draft.unlink(missing_ok=True)
    os.truncate(path, 0)
    return True


def rotated_path(path: Path) -> Path:
    """Return the path of a file's rotated part."""
    return path.with_name(f"{path.name}.1")


def _is_over(path: Path, limit_bytes: int) -> bool:
    try:
        return path.stat().st_size > limit_bytes
    except FileNotFoundError:
        return False
