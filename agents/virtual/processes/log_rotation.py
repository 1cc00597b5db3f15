"""Rotation of files that only grow; one rotated part is kept."""

from pathlib import Path


def rotate_if_over(path: Path, limit_bytes: int) -> bool:
    """Rotate a file that is over the limit; return whether it was."""
    if not path.exists() or path.stat().st_size <= limit_bytes:
        return False
    path.replace(rotated_path(path))
    return True


def rotated_path(path: Path) -> Path:
    """Return the path of a file's rotated part."""
    return path.with_name(f"{path.name}.1")
