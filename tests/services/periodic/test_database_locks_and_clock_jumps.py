"""A locked database, and a clock that jumps: nothing expires that could not be prolonged."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import Connection

from farm.core.errors import FarmBusy
from farm.core.jobs.attempt import AttemptState
from farm.database.engine import Database, sqlite_url
from farm.services.periodic.leader_election import PeriodicLeader, serving_period_since
from tests.support.farm.service_fixture import FarmRig, HostRig, phase

TICK_S = 5.0


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process holds the write lock."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def duties_of(farm: FarmRig) -> PeriodicLeader:
    return PeriodicLeader(
        process="farm-1",
        clock=farm.clock,
        every_s=TICK_S,
        serving=serving_period_since(farm.clock.now(), every_s=TICK_S),
    )


class Life:
    """A farm with its duties, and an agent with a run in hand that calls every tick."""

    def __init__(self, farm: FarmRig, host: HostRig) -> None:
        self.farm, self.host = farm, host
        self.duties = duties_of(farm)
        farm.submit(rounds=1)
        self.run = host.exchange().assignments[0]
        self.hand = [phase(self.run, AttemptState.MEASURING)]
        host.exchange(self.hand)

    def tick(self, connection: Connection) -> None:
        """What is due; the duties are this farm's, whatever the clock of a database server says."""
        now = self.farm.clock.now()
        self.duties.do(connection, now, self.duties.serving.reached(now))

    def go_on(self, seconds: float, *, agent: bool = True) -> None:
        """Time passes, with the ticks and calls that belong to it."""
        for _ in range(round(seconds / TICK_S)):
            self.farm.clock.advance(TICK_S)
            if agent:
                self.host.exchange(self.hand)
            self.farm.write(self.tick)

    def state(self) -> tuple[str, str]:
        """Of the agent's session and of its attempt."""
        (row,) = self.farm.rows(
            "SELECT s.state AS session, a.state AS attempt FROM attempts a JOIN sessions s USING (session_id)"
            " WHERE a.attempt_id = :id",
            id=self.run.attempt_id,
        )
        return row["session"], row["attempt"]


@pytest.mark.invariant("I10", "I11")
@pytest.mark.fault(40)
@pytest.mark.parametrize("held_s", [15, 120, 3600])
def test_nothing_expires_for_as_long_as_the_database_is_locked(sqlite_farm: FarmRig, held_s: float) -> None:
    farm = sqlite_farm
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    host.plug_in("phone-1")
    host.earn_health()
    life = Life(farm, host)
    life.go_on(60)
    before = farm.rows("SELECT count(*) AS n FROM events")
    with closing(Database(sqlite_url(farm.path), busy_ms=20)) as impatient, locked(farm.path):
        for _ in range(2):
            with pytest.raises(FarmBusy) as refused:
                impatient.write(life.tick)
            assert refused.value.transient
            farm.clock.advance(held_s / 2)
    # The sweep is first, before any agent could call again.
    farm.write(life.tick)
    assert life.state() == ("live", "measuring")
    life.go_on(90)
    assert life.state() == ("live", "measuring")
    assert farm.rows("SELECT count(*) AS n FROM events") == before
    # An agent that really went is missed as soon as ever.
    life.go_on(65, agent=False)
    assert life.state()[0] == "silent"
    life.go_on(245, agent=False)
    assert life.state() == ("lost", "lost")


@pytest.mark.fault(40)
def test_behind_a_held_lock_everybody_is_told_so_in_time_not_one_after_the_other(
    sqlite_farm: FarmRig,
) -> None:
    refused_after_s: list[float] = []

    def ask(began_s: float) -> None:
        with pytest.raises(FarmBusy):
            database.write(lambda connection: None)
        refused_after_s.append(time.monotonic() - began_s)

    with closing(Database(sqlite_url(sqlite_farm.path), busy_ms=1500)) as database, locked(sqlite_farm.path):
        threads = [threading.Thread(target=ask, args=(time.monotonic(),)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(refused_after_s) == 20
    # One after the other it would be 30 s.
    assert max(refused_after_s) < 15


@pytest.mark.invariant("I10", "I11")
@pytest.mark.fault(50)
@pytest.mark.parametrize("jump_s", [86400, -86400, 3600, -3600, 61, -61])
def test_no_lease_ends_or_becomes_immortal_when_the_wall_clock_of_the_farm_jumps(
    farm: FarmRig, host: HostRig, jump_s: float
) -> None:
    life = Life(farm, host)
    life.go_on(30)
    farm.clock.jump(jump_s)
    farm.write(life.tick)
    life.go_on(120)
    assert life.state() == ("live", "measuring")


@pytest.mark.invariant("I9", "I10")
@pytest.mark.fault(50)
@pytest.mark.parametrize("jump_s", [86400, -86400])
def test_an_agent_that_ends_as_the_clock_jumps_is_missed_as_soon_as_any(
    farm: FarmRig, host: HostRig, jump_s: float
) -> None:
    life = Life(farm, host)
    life.go_on(30)
    farm.clock.jump(jump_s)
    life.go_on(55, agent=False)
    assert life.state()[0] == "live"
    life.go_on(75, agent=False)
    assert life.state()[0] == "silent"
    life.go_on(300, agent=False)
    assert life.state() == ("lost", "lost")
