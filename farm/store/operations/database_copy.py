"""Copies of a database: a snapshot as an SQLite file while others write, and all rows to another database."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.engine import Connection, Engine

from farm.core.base.ids import Digest
from farm.database.engine import disable_idle_timeout, opened_engine, sqlite_url
from farm.database.errors import transient_errors_as_busy
from farm.database.migrate import VERSION_TABLE, check_newest, upgrade
from farm.database.sequences import advance_sequences
from farm.database.tables import UtcTime, database_epochs, metadata

#: Rows in memory at once; fewer if a row may have megabytes.
_ROWS, _ROWS_WITH_BYTES = 1000, 50

Progress = Callable[[str, int], None]


def count_rows(connection: Connection) -> dict[str, int]:
    """Return the number of rows by table name."""
    return {
        table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        for table in metadata.sorted_tables
    }


def has_rows(connection: Connection) -> bool:
    """Return True if the database has any row but its first epoch."""
    names = sa.inspect(connection).get_table_names()
    used = (table for table in metadata.sorted_tables if table is not database_epochs and table.name in names)
    queries = (sa.select(sa.literal(1)).select_from(table).limit(1) for table in used)
    return any(connection.execute(query).first() is not None for query in queries)


def unknown_tables(connection: Connection) -> list[str]:
    """Return tables that are not a farm's: another program uses the database, too."""
    return sorted(set(sa.inspect(connection).get_table_names()) - {*metadata.tables, VERSION_TABLE})


def copy_rows(
    source: Connection, target: Connection, progress: Progress = lambda table, rows: None
) -> dict[str, int]:
    """Copy all rows of the farm into empty tables, and return the number of rows by table name.

    Both databases have the newest schema. Referenced rows are copied first; ids stay unchanged, and new ids
    of the target are higher.

    Args:
        source: in a transaction that sees one snapshot.
        target: in a transaction that may write, and is committed by the caller.
        progress: called with each table's name and the number of its rows copied so far.
    """
    counts = {table.name: _copy_table(source, target, table, progress) for table in metadata.sorted_tables}
    advance_sequences(target)
    return counts


def _copy_table(source: Connection, target: Connection, table: sa.Table, progress: Progress) -> int:
    plain = _without_conversions(table)
    # A new database has an epoch of its own, which the copied ones replace.
    target.execute(plain.delete())
    has_bytes = any(isinstance(column.type, sa.LargeBinary) for column in table.columns)
    size = _ROWS_WITH_BYTES if has_bytes else _ROWS
    rows = _rows(source, plain, size)
    put = _put_into_postgres if target.dialect.name == "postgresql" else _put_into_sqlite
    copied = 0
    while chunk := list(islice(rows, size)):
        put(target, plain, chunk)
        copied += len(chunk)
        progress(table.name, copied)
    return copied


def _put_into_sqlite(target: Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    target.execute(table.insert(), rows)


def _put_into_postgres(target: Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    # Single inserts take several times as long.
    raw = target.connection.driver_connection
    assert isinstance(raw, psycopg.Connection)
    names = list(table.columns.keys())
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), columns)
    with raw.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row([_postgres_value(row[name]) for name in names])


def _rows(source: Connection, table: sa.Table, size: int) -> Iterator[dict[str, Any]]:
    # In key order: a row refers only to older rows of its table.
    query = sa.select(table).order_by(*table.primary_key.columns)
    with source.execute(query, execution_options={"yield_per": size}) as result:
        for row in result.mappings():
            yield dict(row)


def _postgres_value(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value)
    # PostgreSQL's texts cannot contain the character NUL, which SQLite stores.
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


def _without_conversions(table: sa.Table) -> sa.Table:
    """Return the table without type conversions, which a copy would only undo; JSON null stays null."""
    columns = [
        sa.Column(column.name, _stored_type(column.type), primary_key=column.primary_key)
        for column in table.columns
    ]
    return sa.Table(table.name, sa.MetaData(), *columns)


def _stored_type(kind: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    if isinstance(kind, UtcTime):
        return sa.BigInteger()
    return sa.JSON(none_as_null=True) if isinstance(kind, sa.JSON) else kind


@transient_errors_as_busy()
def write_snapshot(engine: Engine, target: Path, progress: Progress = lambda table, rows: None) -> None:
    """Write all rows into a new file, which is an ordinary database of a farm.

    Writers do not wait: both databases keep a snapshot for a reader.

    Raises:
        SchemaMismatch: the database's schema is not this release's.
        FarmBusy: the server became unavailable.
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
    with opened_engine(sqlite_url(target)) as engine:
        upgrade(engine)
        with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
            copy_rows(source, connection, progress)


def stored_digests(path: Path) -> list[Digest]:
    """Return the artifacts that the database of a backup, of this release or an older one, refers to."""
    # Immutable: reading leaves no files beside it.
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        rows = connection.execute("SELECT digest FROM artifacts WHERE expired_at IS NULL ORDER BY digest")
        return [Digest(digest) for (digest,) in rows]


def fold_write_ahead_log(path: Path) -> None:
    """Move the write-ahead log of an unused database into its file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
