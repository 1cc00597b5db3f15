"""A database that is migrated."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import Engine

from farm.database.engine import create_engine, sqlite_url


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "farm.sqlite3"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    made = create_engine(sqlite_url(path))
    yield made
    made.dispose()
