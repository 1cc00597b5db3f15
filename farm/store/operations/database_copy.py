"""Copies all rows from one database to another, of either kind, in bounded memory."""

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

#: Rows under way at once; fewer where one of them may have megabytes.
_ROWS, _ROWS_WITH_BYTES = 1000, 50

Progress = Callable[[str, int], None]


def count_rows(connection: Connection) -> dict[str, int]:
    """How many rows each table has, by its name."""
    return {
        table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        for table in metadata.sorted_tables
    }


def has_rows(connection: Connection) -> bool:
    """Whether a database was used: anything but the epoch that it began with."""
    there = sa.inspect(connection).get_table_names()
    used = (table for table in metadata.sorted_tables if table is not database_epochs and table.name in there)
    query = (sa.select(sa.literal(1)).select_from(table).limit(1) for table in used)
    return any(connection.execute(each).first() is not None for each in query)


def unknown_tables(connection: Connection) -> list[str]:
    """Tables that no farm has: the database is another program's, or shared with one."""
    return sorted(set(sa.inspect(connection).get_table_names()) - {*metadata.tables, VERSION_TABLE})


def copy_rows(
    source: Connection, target: Connection, progress: Progress = lambda table, rows: None
) -> dict[str, int]:
    """Copy every row of ours into empty tables; how many each table had, by its name.

    Both have the newest schema. What other rows refer to goes first; numbers stay as they are, and the next
    that the target gives are higher.

    Args:
        source: in a transaction that sees one snapshot.
        target: in a transaction that may write, and is committed by the caller.
        progress: told each table's name with its rows so far.
    """
    counts = {table.name: _copy_table(source, target, table, progress) for table in metadata.sorted_tables}
    advance_sequences(target)
    return counts


def _copy_table(source: Connection, target: Connection, table: sa.Table, progress: Progress) -> int:
    plain = _without_conversions(table)
    # A new database has an epoch of its own: it goes on with the history that it is given.
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
    # Row by row it takes several times as long.
    raw = target.connection.driver_connection
    assert isinstance(raw, psycopg.Connection)
    names = list(table.columns.keys())
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), columns)
    with raw.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row([_postgres_value(row[name]) for name in names])


def _rows(source: Connection, table: sa.Table, size: int) -> Iterator[dict[str, Any]]:
    # In the order of their keys: a row refers to older ones of its table only.
    query = sa.select(table).order_by(*table.primary_key.columns)
    with source.execute(query, execution_options={"yield_per": size}) as found:
        for row in found.mappings():
            yield dict(row)


def _postgres_value(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value)
    # SQLite keeps the one character that PostgreSQL's texts cannot hold.
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


def _chunk_rows(table: sa.Table) -> int:
    has_bytes = any(isinstance(column.type, sa.LargeBinary) for column in table.columns)
    return _ROWS_WITH_BYTES if has_bytes else _ROWS


def _without_conversions(table: sa.Table) -> sa.Table:
    """The table without conversions that a copy would only undo; no value in JSON stays none."""
    columns = [
        sa.Column(column.name, _stored_type(column.type), primary_key=column.primary_key)
        for column in table.columns
    ]
    return sa.Table(table.name, sa.MetaData(), *columns)


def _stored_type(kind: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    if isinstance(kind, UtcTime):
        return sa.BigInteger()
    return sa.JSON(none_as_null=True) if isinstance(kind, sa.JSON) else kind
