"""Consistent snapshot of a database as an SQLite file, while others write."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import Connection, Engine

from farm.database.engine import create_engine, disable_idle_timeout, sqlite_url
from farm.database.errors import transient_errors_as_busy
from farm.database.migrate import upgrade
from farm.database.schema_state import check_newest
from farm.store.operations.database_copy import Progress, copy_rows


@transient_errors_as_busy()
def write_snapshot(engine: Engine, target: Path, progress: Progress = lambda table, rows: None) -> None:
    """Write all rows into a new file, which is an ordinary database of a farm.

    Nobody has to wait meanwhile: both databases keep a snapshot for a reader.

    Raises:
        SchemaMismatch: the database's schema is not this release's.
        FarmBusy: the server went away meanwhile, say.
    """
    with engine.connect() as connection:
        disable_idle_timeout(connection)
        check_newest(connection)
        if engine.dialect.name == "sqlite":
            _copy_file(connection, target)
        else:
            _copy_all(connection, target, progress)


def _copy_file(connection: Connection, target: Path) -> None:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    with closing(sqlite3.connect(target)) as copy:
        # In one step: with several, a write in between would restart the copy.
        raw.backup(copy, pages=-1)


def _copy_all(source: Connection, target: Path, progress: Progress) -> None:
    engine = create_engine(sqlite_url(target))
    try:
        upgrade(engine)
        with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
            copy_rows(source, connection, progress)
    finally:
        engine.dispose()


def fold_write_ahead_log(path: Path) -> None:
    """Move the write-ahead log of an unused database into its file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
