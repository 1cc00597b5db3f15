"""The sequences that generate row ids."""

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


def skip_sequence_numbers(connection: Connection, count: int) -> None:
    """Skip the next ids of every table with public ids."""
    for table in tables_with_public_ids():
        if connection.dialect.name == "postgresql":
            _set_sequence(connection, table, _last_number(connection, table) + count)
        else:
            _set_sqlite_number(connection, table, count)


def _primary_key(table: sa.Table) -> sa.Column[int]:
    column = table.autoincrement_column
    assert column is not None
    return column


def _set_sequence(connection: Connection, table: sa.Table, last: int) -> None:
    connection.execute(sa.select(sa.func.setval(_sequence(table), last)))


def _last_number(connection: Connection, table: sa.Table) -> int:
    # Read from the sequence, not from the rows: the newest rows may be deleted.
    query = sa.select(sa.func.coalesce(sa.func.pg_sequence_last_value(_sequence(table)), 0))
    return int(connection.execute(query).scalar_one())


def _sequence(table: sa.Table) -> sa.ColumnElement[str]:
    name = sa.func.pg_get_serial_sequence(table.name, _primary_key(table).name)
    return sa.cast(name, postgresql.REGCLASS)


def _set_sqlite_number(connection: Connection, table: sa.Table, count: int) -> None:
    moved = connection.execute(
        sa.text("UPDATE sqlite_sequence SET seq = seq + :count WHERE name = :name"),
        {"count": count, "name": table.name},
    )
    if moved.rowcount == 0:
        connection.execute(
            sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :count)"),
            {"count": count, "name": table.name},
        )
