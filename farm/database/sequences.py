"""The sequences that generate row ids."""

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection

from farm.database.tables import metadata


def tables_with_sequence() -> list[sa.Table]:
    """Return the tables whose ids the database generates."""
    return [table for table in metadata.sorted_tables if table.autoincrement_column is not None]


def tables_with_public_ids() -> list[sa.Table]:
    """Return the tables whose ids leave the database, and are therefore never reused."""
    return [table for table in tables_with_sequence() if table.dialect_options["sqlite"]["autoincrement"]]


def advance_sequences(connection: Connection) -> None:
    """Advance each sequence beyond the ids of copied rows; SQLite does so itself."""
    if connection.dialect.name == "postgresql":
        for table in tables_with_sequence():
            last = connection.execute(sa.select(sa.func.max(_primary_key(table)))).scalar()
            if last is not None:
                _set_sequence(connection, table, last)


def skip_sequence_numbers(connection: Connection, count: Callable[[sa.Table, int], int]) -> None:
    """Skip the next ids of every table with public ids, as many as `count` says for its last one."""
    for table in tables_with_public_ids():
        last = last_number(connection, table)
        if connection.dialect.name == "postgresql":
            _set_sequence(connection, table, last + count(table, last))
        else:
            _set_sqlite_number(connection, table, last + count(table, last))


def last_number(connection: Connection, table: sa.Table) -> int:
    """Return the last id given in a table with public ids, even if its row is deleted; 0 without one."""
    if connection.dialect.name == "postgresql":
        query = sa.select(sa.func.coalesce(sa.func.pg_sequence_last_value(_sequence(table)), 0))
        return int(connection.execute(query).scalar_one())
    given = sa.text("SELECT seq FROM sqlite_sequence WHERE name = :name")
    return int(connection.execute(given, {"name": table.name}).scalar() or 0)


def _primary_key(table: sa.Table) -> sa.Column[int]:
    column = table.autoincrement_column
    assert column is not None
    return column


def _set_sequence(connection: Connection, table: sa.Table, last: int) -> None:
    connection.execute(sa.select(sa.func.setval(_sequence(table), last)))


def _sequence(table: sa.Table) -> sa.ColumnElement[str]:
    name = sa.func.pg_get_serial_sequence(table.name, _primary_key(table).name)
    return sa.cast(name, postgresql.REGCLASS)


def _set_sqlite_number(connection: Connection, table: sa.Table, last: int) -> None:
    moved = connection.execute(
        sa.text("UPDATE sqlite_sequence SET seq = :last WHERE name = :name"),
        {"last": last, "name": table.name},
    )
    if moved.rowcount == 0:
        connection.execute(
            sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"),
            {"last": last, "name": table.name},
        )
