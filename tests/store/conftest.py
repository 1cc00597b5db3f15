"""A database with one row of most things, to break rules in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rows import HOST, NOW, PHONE, add_rows

from farm.store.database import Database, sqlite_url
from farm.store.migrate import upgrade


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated, empty database that gives up waiting for locks soon."""
    if request.param == "sqlite":
        opened = Database(sqlite_url(tmp_path / "farm.sqlite3"), busy_ms=50)
        upgrade(opened.engine)
        yield opened
        opened.close()
    else:
        server = request.getfixturevalue("postgres")
        with server.database() as name:
            opened = Database(server.url(name), busy_ms=50)
            upgrade(opened.engine)
            yield opened
            opened.close()


@pytest.fixture
def filled(database: Database) -> Database:
    """One host with a live session, one phone, one matrix of one cell with a queued job."""
    database.write(add_rows)
    return database


__all__ = ["HOST", "NOW", "PHONE"]
