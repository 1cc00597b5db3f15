"""A database with one row of most things, to break rules in."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from farm.database.engine import BUSY_MS, Database, sqlite_url
from tests.support.database.migrated_database import put_migrated
from tests.support.database.sample_rows import add_rows


@contextmanager
def any_database(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """An empty database, migrated, of the kind that a fixture's parameter names."""
    if request.param == "sqlite":
        path = folder / "farm.sqlite3"
        put_migrated(path)
        yield sqlite_url(path)
    else:
        server = request.getfixturevalue("postgres")
        with server.database("migrated") as name:
            yield server.url(name)


@contextmanager
def opened(url: str, *, busy_ms: int = BUSY_MS) -> Iterator[Database]:
    """A migrated database."""
    database = Database(url, busy_ms=busy_ms)
    try:
        yield database
    finally:
        database.close()


@pytest.fixture
def database(any_database_url: str) -> Iterator[Database]:
    """An empty database, of each kind."""
    with opened(any_database_url) as database:
        yield database


@pytest.fixture
def filled(database: Database) -> Database:
    """One host with a live session, one phone, one matrix of one cell with a queued job."""
    database.write(add_rows)
    return database


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    """An empty SQLite file, whose writers give up waiting for other processes soon."""
    path = tmp_path / "farm.sqlite3"
    put_migrated(path)
    with opened(sqlite_url(path), busy_ms=50) as database:
        yield database


@pytest.fixture
def sqlite_filled(sqlite_database: Database) -> Database:
    """As `filled`, in an SQLite file."""
    sqlite_database.write(add_rows)
    return sqlite_database
