"""Copy of all rows from one database to another, of either kind, in bounded memory."""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.engine import Connection

from farm.database.schema_state import VERSION_TABLE
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
    size = _chunk_rows(table)
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


def _chunk_rows(table: sa.Table) -> int:
    has_bytes = any(isinstance(column.type, sa.LargeBinary) for column in table.columns)
    return _ROWS_WITH_BYTES if has_bytes else _ROWS


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
