"""Checks of `farm doctor --farm`: what a farm needs of its machine, and a model builder of torch."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from agents.doctor import machine
from agents.doctor.machine import ProcessInfo, find_listener, process_text
from farm.cli.admin.expiry_checks import check_certificate, check_tokens, read_tokens
from farm.cli.shell.address import find_running
from farm.client.farm_client import FarmClient
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.address import host_and_port
from farm.core.errors import Blame, FarmError, SchemaMismatch
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning
from farm.database.connect import check_server, display_url, open_database
from farm.database.migrate import (
    SchemaState,
    check_is_farm_database,
    check_known,
    read_schema_state,
    schema_state,
)
from farm.database.transaction import bind_tx

#: An import takes 3 to 6 s of CPU time; a busier machine is not waited for.
_DEADLINE_S = 20.0

Process = subprocess.Popen[str]


def check_database(config: FarmConfig) -> Diagnostic:
    """Open the database for reading, and check that this release can use it."""
    place = display_url(config)
    try:
        state = _read_state(config)
    except FarmError as error:
        message, hint = error.message, error.hint
    except (sqlite3.Error, sa.exc.DBAPIError) as error:
        message, hint = (
            str(error),
            "is that a farm's file, readable for this user? else restore it from a backup",
        )
    else:
        return check_schema(place, state)
    return problem("database", f"{place} cannot be read: {message}", hint, blame=Blame.FARM)


def check_schema(place: str, state: SchemaState | None) -> Diagnostic:
    """Check the schema of the database; None if there is no database yet."""
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


def check_expiry(config: FarmConfig) -> list[Diagnostic]:
    """Check which certificate and access tokens expire soon; a database that does not open has none."""
    now = SystemClock().now()
    found = check_certificate(config, now)
    try:
        state = _read_state(config)
        if state is None or not state.is_newest:
            return found
        with closing(open_database(config)) as database:
            return [*found, *check_tokens(database.read(bind_tx(read_tokens, now=now)), now)]
    except (FarmError, sqlite3.Error, sa.exc.DBAPIError):
        return found


@contextmanager
def import_process(module: str = "farm.variants.networks") -> Iterator[Process]:
    """Import a module in a process, which is ended with the block."""
    # In a process, as a torch build for another CPU ends by a signal, and loading takes seconds.
    command = [sys.executable, "-c", f"import {module}"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def diagnose_torch(process: Process, *, deadline_s: float = _DEADLINE_S) -> Diagnostic:
    """Check that this machine can build variants; nothing else needs torch."""
    try:
        _, stderr = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        hint = "repeat it when this machine is less busy: farm doctor --farm"
        return warning("torch", f"the import had not ended after {deadline_s:g} s", hint)
    if process.returncode == 0:
        return ok("torch", "can be imported: `farm variant build` works here")
    reason = (stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
    hint = "`make install` installs it; measuring files that were built elsewhere does not need it"
    return warning("torch", f"cannot be imported ({reason}): `farm variant build` does not work here", hint)


def diagnose_farm(config: FarmConfig) -> list[Diagnostic]:
    """Check this machine with the settings of a farm, without starting or changing anything."""
    running = find_running(config.data_dir)
    with import_process() as torch:
        return [
            *machine.check_folder(machine.probe_folder(config.data_dir), "FARM_DATA_DIR"),
            check_database(config),
            *check_expiry(config),
            *check_alarms(read_alarms(running)),
            *check_ports(config, running, {port: find_listener(port) for port in _ports(config)}),
            machine.check_file_limit(machine.read_file_limit()),
            diagnose_torch(torch),
        ]


def check_ports(
    config: FarmConfig, running: str | None, listener_by_port: dict[int, ProcessInfo | None]
) -> list[Diagnostic]:
    """Check that the farm listens on its ports, or that they are free."""
    if running is not None:
        return [ok("ports", f"the farm runs at {running}")]
    process_by_port = {port: process for port, process in listener_by_port.items() if process is not None}
    hint = "end that program, or choose another port with --port or --agents-on"
    return [
        problem("ports", f"port {port} is used by {process_text(process)}", hint, blame=Blame.USER)
        for port, process in process_by_port.items()
    ] or [ok("ports", f"free: {', '.join(map(str, _ports(config)))}")]


def read_alarms(running: str | None) -> list[str] | None:
    """Return the alarms of the farm that runs here; None if none runs or it does not answer."""
    if running is None:
        return None
    try:
        with FarmClient(running) as farm:
            return [alarm.message for alarm in farm.alarms()]
    except FarmError:
        return None


def check_alarms(messages: list[str] | None) -> list[Diagnostic]:
    """Check that no alarm is open; no diagnostic if that is unknown."""
    if messages is None:
        return []
    if not messages:
        return [ok("alarms", "none is open")]
    more = f", and {len(messages) - 1} more" if len(messages) > 1 else ""
    return [warning("alarms", f"{messages[0]}{more}", "farm alarms")]


def _ports(config: FarmConfig) -> list[int]:
    agents = [] if config.agents_bind is None else [host_and_port(config.agents_bind)[1]]
    return [port for port in (config.port, *agents) if port]
