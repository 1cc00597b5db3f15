"""Plays one seed from beginning to end."""

import logging
from dataclasses import dataclass
from pathlib import Path

import structlog

from farm.core.operations.event import EventSubject
from tests.simulation.device_operations import figure_us
from tests.simulation.virtual_time import VirtualLoop
from tests.simulation.world import SimulatedWorld
from tests.support.farm.service_fixture import FarmRig
from tests.support.invariants.invariants import check_engine

TROUBLED_S = 900.0
#: A give-back for each grant that nobody starts, the longest patience of farm and agents, many times over.
CALM_S = 3 * 3600.0

Event = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a seed."""

    trace: list[str]
    events: list[Event]


def play(
    rig: FarmRig, folder: Path, seed: int, *, troubled_s: float = TROUBLED_S, is_comparable: bool = False
) -> Played:
    """Trouble, then peace; raises AssertionError, with the trace's end, when a promise was broken."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    rig.variant("float32")
    rig.variant("int8-core")
    loop = VirtualLoop(rig.clock)
    try:
        world = SimulatedWorld(rig, folder, seed, is_comparable=is_comparable)
        loop.run_until_complete(_played(world, seed, troubled_s))
    finally:
        loop.close()
    return Played(trace=world.trace, events=events_of(rig))


async def _played(world: SimulatedWorld, seed: int, troubled_s: float) -> None:
    rig = world.rig
    try:
        await world.troubled(troubled_s)
        check_engine(rig.database.engine)
        await world.calm(CALM_S)
        check_engine(rig.database.engine)
        _check_figures(rig)
    except BaseException as error:
        error.add_note(f"seed {seed}; the last of it:\n" + "\n".join(world.trace[-60:]))
        raise
    finally:
        await world.close()


def _check_figures(rig: FarmRig) -> None:
    """I4: a measurement is what its own attempt's run printed."""
    for row in rig.rows("SELECT attempt_id, value_ns FROM measurements WHERE quality = 'valid'"):
        assert row["value_ns"] == 1000 * figure_us(row["attempt_id"]), f"I4 attempt {row['attempt_id']}"


def events_of(rig: FarmRig) -> list[Event]:
    """The event log, but for what no seed decides: secrets."""
    columns = "at, actor, kind, subject, subject_id, from_state, to_state, cause"
    told = [tuple(row.values()) for row in rig.rows(f"SELECT {columns} FROM events ORDER BY event_id")]
    return [event for event in told if event[3] != EventSubject.JOIN]
