"""A database with one row of most things, to break rules in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from migrated import put_migrated
from rows import HOST, NOW, PHONE, add_rows

from farm.store.database import Database, sqlite_url


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A migrated, empty database that gives up waiting for locks soon."""
    path = tmp_path / "farm.sqlite3"
    put_migrated(path)
    opened = Database(sqlite_url(path), busy_ms=50)
    yield opened
    opened.close()


@pytest.fixture
def filled(database: Database) -> Database:
    """One host with a live session, one phone, one matrix of one cell with a queued job."""
    database.write(add_rows)
    return database


__all__ = ["HOST", "NOW", "PHONE"]
