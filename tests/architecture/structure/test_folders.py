"""Folders stay small enough to be read at a glance."""

from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import ROOT, name_of

MAX_ENTRIES = 12
#: The floors stand side by side in these two.
EXEMPT = {"farm", "tests"}
NOT_COUNTED = {"__init__.py", "conftest.py", "__pycache__"}


def folders() -> Iterator[Path]:
    for top in ("farm", "agents", "benchfarm", "tests"):
        yield ROOT / top
        yield from (
            path for path in (ROOT / top).rglob("*") if path.is_dir() and "__pycache__" not in path.parts
        )


def is_counted(entry: Path) -> bool:
    """Tell whether an entry is a file or a folder of files; bytecode alone may remain of a moved module."""
    if entry.name in NOT_COUNTED:
        return False
    return entry.is_file() or any(
        path.is_file() and "__pycache__" not in path.parts for path in entry.rglob("*")
    )


def test_no_folder_has_more_than_twelve_entries() -> None:
    entries = {name_of(folder): sum(map(is_counted, folder.iterdir())) for folder in folders()}
    offenders = {name: count for name, count in entries.items() if count > MAX_ENTRIES and name not in EXEMPT}
    assert offenders == {}
