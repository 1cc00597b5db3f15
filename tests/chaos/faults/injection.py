"""How each fault of a schedule is made, and made good again."""

import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import assert_never

import sqlalchemy as sa

from agents.virtual.faults import Faults, parse_faults, set_faults
from tests.chaos.faults.schedule import AILMENTS, Fault, Kind
from tests.chaos.network.proxy import Mischief, Trap
from tests.chaos.testbed.testbed import Arena, revive, stopped
from tests.support.farm.processes import CHECKOUT, AgentProcess, Process
from tests.support.faults.disk_faults import no_file_grows_beyond

Undo = Callable[[], None]

#: So long a second agent may take to find that there is one.
_GIVES_UP_S = 60.0
_LOCK_BUSY_S = 5.0


def disturb(arena: Arena, fault: Fault) -> Undo:
    """Make it; what is returned makes it good."""
    match fault.kind:
        case Kind.FARM_KILLED:
            return killed(arena.farms[fault.target])
        case Kind.FARM_STOPPED:
            return halted(arena.farms[fault.target])
        case Kind.FARM_DISK_FULL:
            return full(arena.farms[fault.target])
        case Kind.AGENT_KILLED:
            return killed(arena.agents[fault.target])
        case Kind.AGENT_STOPPED:
            return halted(arena.agents[fault.target])
        case Kind.SECOND_AGENT:
            return _second(arena.agents[fault.target])
        case Kind.ADB_KILLED:
            return _adb(arena.agents[fault.target], signal.SIGKILL)
        case Kind.ADB_STOPPED:
            return _adb(arena.agents[fault.target], signal.SIGSTOP)
        case Kind.PHONE_AILS:
            return _ailing(arena.phones[fault.target].state, fault.detail)
        case Kind.PHONE_MOVES:
            return _moving(arena, fault.target)
        case Kind.NETWORK:
            trap = Trap(mischief=Mischief(fault.detail), path=fault.path, hold_s=fault.lasts_s)
            arena.loop.run(arena.proxy.arm(trap))
            return _nothing
        case Kind.DATABASE_LOCKED:
            return _locked(arena.farms[0].database_path)
        case Kind.BACKENDS_TERMINATED:
            _terminate_backends(arena)
            return _nothing
        case _:
            assert_never(fault.kind)


def _nothing() -> None:
    """It is over already."""


def killed(process: Process) -> Undo:
    """Raises AssertionError for one that ended by itself before."""
    process.check_alive()
    process.kill()
    return lambda: revive(process)


def halted(process: Process) -> Undo:
    """Raises AssertionError for one that ended by itself: its number may be another's by now."""
    process.check_alive()
    return stopped(process.pid).go_on


def full(process: Process) -> Undo:
    """Of its files none grows, nor is one begun."""
    process.check_alive()
    disk = ExitStack()
    disk.enter_context(no_file_grows_beyond(process.pid, 0))
    return disk.close


def _adb(agent: AgentProcess, number: signal.Signals) -> Undo:
    pid = agent.find_adb_server_pid()
    if pid is None:
        return _nothing
    if number is signal.SIGSTOP:
        return stopped(pid).go_on
    agent.kill_adb_server()
    return _nothing


def _second(agent: AgentProcess) -> Undo:
    """Start the agent once more, as an operator in a hurry does."""
    try:
        done = subprocess.run(
            agent.command, capture_output=True, text=True, timeout=_GIVES_UP_S, check=False, cwd=CHECKOUT
        )
    except subprocess.TimeoutExpired as error:
        raise AssertionError("a second agent works in the folder of another") from error
    assert done.returncode == 5, f"{done.returncode}: {done.stderr}"
    assert f"agent (pid {agent.pid}) already works" in done.stderr, done.stderr
    return _nothing


def _ailing(state: Path, failure_mode: str) -> Undo:
    set_faults(state, parse_faults(AILMENTS[failure_mode]))
    return lambda: set_faults(state, Faults())


def _moving(arena: Arena, phone: int) -> Undo:
    arena.pull_out(phone)
    arena.places[phone] = (arena.places[phone] + 1) % len(arena.agents)
    return lambda: arena.plug_in(phone)


def _locked(database: Path) -> Undo:
    connection = sqlite3.connect(
        database, timeout=_LOCK_BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        # Somebody else holds it already, who was stopped while doing so.
        connection.close()
        return _nothing

    def unlock() -> None:
        connection.execute("ROLLBACK")
        connection.close()

    return unlock


def _terminate_backends(arena: Arena) -> None:
    others = sa.text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with arena.farms[0].database.engine.connect() as connection:
        connection.execute(others)
