"""The schema version of a database, and its migration to the schema of this release."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection, Engine

import farm
from farm.core.errors import Conflict, SchemaMismatch
from farm.database.errors import transient_errors_as_busy

#: The table in which Alembic records the last migration.
VERSION_TABLE = "alembic_version"
#: Schemas of development versions, which the first release does not support.
_UNRELEASED = frozenset(f"{number:04}" for number in (*range(1, 9), 100))
MIGRATIONS = Path(farm.__file__).resolve().parent.parent / "migrations"
#: The advisory lock that lets one farm of a PostgreSQL server migrate at a time; any number would do.
_LOCK = 8470


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """The recorded schema version of a database."""

    #: The last applied migration; None for an empty database.
    revision: str | None
    #: The newest migration of this release.
    newest: str
    #: True if this release has the database's migration.
    is_known: bool

    @property
    def is_newest(self) -> bool:
        """True if this release can use the database as it is."""
        return self.revision == self.newest


def read_schema_state(path: Path) -> SchemaState:
    """Return the schema state of an SQLite file, which a farm may be using.

    Raises:
        sqlite3.Error: the file is no database of a farm, is damaged, or cannot be read.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (table,) = connection.execute(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'alembic_version'"
        ).fetchone()
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if table else None
    return _state(None if row is None else str(row[0]))


def schema_state(connection: Connection) -> SchemaState:
    """Return the schema state of any database."""
    return _state(MigrationContext.configure(connection).get_current_revision())


def check_known(state: SchemaState) -> None:
    """Refuse a database of a newer release, or of a development version before the first release.

    Raises:
        SchemaMismatch: the database is one of these.
    """
    if state.revision in _UNRELEASED:
        raise SchemaMismatch(
            f"the database is of a development version before the first release (schema {state.revision})",
            hint="start with an empty data folder or database; only the version that created it can read it",
        )
    if not state.is_known:
        raise SchemaMismatch(
            f"the database has the schema of a newer release ({state.revision}); this one supports"
            f" {state.newest} at most",
            hint="run the release that created it, or a newer one; to go back, restore a backup",
        )


def check_is_farm_database(connection: Connection, state: SchemaState) -> None:
    """Refuse a database that another program uses, whatever its tables are called.

    Raises:
        Conflict: the database has tables, but no schema version of a farm.
    """
    tables = sorted(set(sa.inspect(connection).get_table_names()) - {VERSION_TABLE})
    if state.revision is None and tables:
        raise Conflict(
            f"another program uses the database: it has a table {tables[0]}",
            hint="give the farm an empty database of its own",
        )


def check_newest(connection: Connection) -> None:
    """Refuse a database whose schema is not this release's.

    Raises:
        SchemaMismatch: the schema is older or newer, or there is none yet.
    """
    state = schema_state(connection)
    check_known(state)
    if not state.is_newest:
        raise SchemaMismatch(
            f"the database has schema {state.revision or 'none'}, this release needs {state.newest}"
        )


def _state(revision: str | None) -> SchemaState:
    newest, revisions = _revisions()
    return SchemaState(revision=revision, newest=newest, is_known=revision is None or revision in revisions)


@cache
def _revisions() -> tuple[str, frozenset[str]]:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    newest = scripts.get_current_head()
    assert newest is not None
    return newest, frozenset(script.revision for script in scripts.walk_revisions())


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
