"""Brings a database to the schema this version needs."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection, Engine

from farm.database.errors import transient_errors_as_busy
from farm.database.schema_state import MIGRATIONS, check_is_farm_database, check_known, schema_state

#: Of all farms that share a PostgreSQL, one migrates at a time; any number would do.
_LOCK = 8470


def upgrade(engine: Engine) -> None:
    """Apply all missing migrations in one transaction; does nothing on an up-to-date database.

    Raises:
        SchemaMismatch: the database is a newer release's.
        Conflict: it is another program's.
        FarmBusy: it went away meanwhile, say; nothing is done then.
    """
    with (
        transient_errors_as_busy(),
        engine.connect().execution_options(farm_writes=True) as connection,
        defer_foreign_keys(connection),
        _exclusive_transaction(connection),
    ):
        state = schema_state(connection)
        check_known(state)
        check_is_farm_database(connection, state)
        if not state.is_newest:
            command.upgrade(config_for(connection), "head")


def config_for(connection: Connection) -> Config:
    """Alembic's settings for migrating over a connection."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


@contextmanager
def _exclusive_transaction(connection: Connection) -> Iterator[None]:
    """A transaction that sees what the one before it did, however long that took."""
    if connection.dialect.name == "sqlite":
        with connection.begin():
            yield
        return
    # Any other level would look at the database as it was before the wait for the lock.
    connection.execution_options(isolation_level="READ COMMITTED")
    with connection.begin():
        # A migration of much takes as long as it takes.
        connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        yield


@contextmanager
def defer_foreign_keys(connection: Connection) -> Iterator[None]:
    """Have SQLite tolerate that a table is dropped and made again though others refer to it.

    It cannot alter a column otherwise, and takes the order between transactions only. PostgreSQL alters in
    place and needs none of this.

    Raises:
        IntegrityError: a migration left rows that refer to nothing; it is undone.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    raw = connection.connection.driver_connection
    assert raw is not None
    raw.execute("PRAGMA foreign_keys=OFF")
    sa.event.listen(connection, "commit", _check_references)
    try:
        yield
    finally:
        sa.event.remove(connection, "commit", _check_references)
        raw.execute("PRAGMA foreign_keys=ON")


def _check_references(connection: Connection) -> None:
    astray = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
    if astray:
        raise sa.exc.IntegrityError(
            f"rows that refer to nothing: {astray[:3]}", None, ValueError(len(astray))
        )
