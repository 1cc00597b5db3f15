"""Files that only grow: over a limit they are set aside, and the one set aside before goes."""

from pathlib import Path


def rotate_if_over(path: Path, limit_bytes: int) -> bool:
    """Give a file that is over the limit its other name; says whether it did."""
    if not path.exists() or path.stat().st_size <= limit_bytes:
        return False
    path.replace(rotated_path(path))
    return True


def rotated_path(path: Path) -> Path:
    """Where a file's earlier part is, if it was ever set aside."""
    return path.with_name(f"{path.name}.1")
