"""Checks of the farm's database that change nothing."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.config import FarmConfig
from farm.core.errors import Blame, FarmError, SchemaMismatch
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning
from farm.database.connect import check_server, display_url, open_database
from farm.database.schema_state import (
    SchemaState,
    check_is_farm_database,
    check_known,
    read_schema_state,
    schema_state,
)

_HINT = "is that a farm's file, readable for this user? else restore it from a backup"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseProbe:
    """The result of opening the database."""

    place: str
    #: None where there is none yet, or it cannot be read.
    state: SchemaState | None = None
    #: Why it cannot be read, and how to fix that.
    error: str | None = None
    hint: str = _HINT


def probe_database(config: FarmConfig) -> DatabaseProbe:
    """Open the database for reading."""
    place = display_url(config)
    try:
        return DatabaseProbe(place=place, state=_read_state(config))
    except FarmError as error:
        return DatabaseProbe(place=place, error=error.message, hint=error.hint)
    except (sqlite3.Error, sa.exc.DBAPIError) as error:
        return DatabaseProbe(place=place, error=str(error))


def check_database(probe: DatabaseProbe) -> Diagnostic:
    """Check that this release can use the database."""
    place, state = probe.place, probe.state
    if probe.error is not None:
        return problem("database", f"{place} cannot be read: {probe.error}", probe.hint, blame=Blame.FARM)
    if state is None or state.revision is None:
        return ok("database", f"none yet; `farm up` creates {place}")
    try:
        check_known(state)
    except SchemaMismatch as error:
        return problem("database", f"{place}: {error.message}", error.hint, blame=Blame.FARM)
    if not state.is_newest:
        hint = "the next `farm up` migrates it: take a backup first"
        return warning("database", f"its schema is {state.revision}, this release's {state.newest}", hint)
    return ok("database", f"{place} opens, its schema is {state.newest}")


def _read_state(config: FarmConfig) -> SchemaState | None:
    if config.database_url is None:
        return read_schema_state(config.database_path) if config.database_path.exists() else None
    check_server(config)
    with closing(open_database(config)) as database:
        return database.read(_farm_schema_state)


def _farm_schema_state(connection: Connection) -> SchemaState:
    state = schema_state(connection)
    check_is_farm_database(connection, state)
    return state
