"""Files that only grow: over a limit they are set aside, and the one set aside before goes."""

from pathlib import Path


def set_aside_if_over(path: Path, limit_bytes: int) -> bool:
    """Give a file that is over the limit its other name; says whether it did."""
    if not path.exists() or path.stat().st_size <= limit_bytes:
        return False
    path.replace(set_aside(path))
    return True


def set_aside(path: Path) -> Path:
    """Where a file's earlier part is, if it was ever set aside."""
    return path.with_name(f"{path.name}.1")
