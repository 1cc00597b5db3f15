"""Migration of a database to the schema of this release."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection, Engine

from farm.database.errors import transient_errors_as_busy
from farm.database.schema_state import MIGRATIONS, check_is_farm_database, check_known, schema_state

#: The advisory lock that lets one farm of a PostgreSQL server migrate at a time; any number would do.
_LOCK = 8470


def upgrade(engine: Engine) -> None:
    """Apply all missing migrations in one transaction; does nothing on an up-to-date database.

    Raises:
        SchemaMismatch: the database is from a newer release.
        Conflict: another program uses the database.
        FarmBusy: a transient error, such as a lost connection; nothing is changed then.
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
    """Return Alembic's settings for migrating over a connection."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


@contextmanager
def _exclusive_transaction(connection: Connection) -> Iterator[None]:
    """Open a transaction that sees all changes of the previous migration, however long that took."""
    if connection.dialect.name == "sqlite":
        with connection.begin():
            yield
        return
    # Any other level would see the database as it was before the wait for the lock.
    connection.execution_options(isolation_level="READ COMMITTED")
    with connection.begin():
        # A large migration may take any time.
        connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        yield


@contextmanager
def defer_foreign_keys(connection: Connection) -> Iterator[None]:
    """Let SQLite drop and recreate a table that others refer to.

    SQLite cannot alter a column otherwise, and accepts this setting between transactions only. PostgreSQL
    alters in place and does not need it.

    Raises:
        IntegrityError: a migration left dangling references; it is rolled back.
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
    dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
    if dangling:
        raise sa.exc.IntegrityError(
            f"rows with dangling references: {dangling[:3]}", None, ValueError(len(dangling))
        )
