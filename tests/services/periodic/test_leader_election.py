"""Periodic duties: done by one farm process at a time, taken over from one that is gone, harmless twice."""

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from farm.core.jobs.attempt import LIVE_STATES
from farm.core.operations.leader_lease import LeaseDecision
from farm.services.periodic.leader_election import PeriodicLeader, serving_period_since
from tests.support.database.postgres import PostgresServer
from tests.support.farm.service_fixture import FarmRig, HostRig, checked_rig

EVERY_S = 5.0
LOST_S = 400.0


def duties(farm: FarmRig, process: str, since: datetime | None = None) -> PeriodicLeader:
    return PeriodicLeader(
        process=process,
        clock=farm.clock,
        every_s=EVERY_S,
        serving=serving_period_since(since or farm.clock.now(), every_s=EVERY_S),
    )


def tick(farm: FarmRig, *all_of: PeriodicLeader, for_s: float = 0.0) -> list[LeaseDecision]:
    """Have processes tick, again and again for a while; whose turn it was at last."""
    whose = [farm.write(each.tick) for each in all_of]
    for _ in range(int(for_s / EVERY_S)):
        farm.clock.advance(EVERY_S)
        whose = [farm.write(each.tick) for each in all_of]
    return whose


@pytest.fixture
def shared(postgres: PostgresServer, tmp_path: Path) -> Iterator[FarmRig]:
    """A farm that several processes can work on."""
    with postgres.database("migrated") as name, checked_rig(tmp_path, postgres.url(name)) as farm:
        yield farm


def busy_host(farm: FarmRig) -> HostRig:
    """A host with a phone that has been given a job, and has not started it."""
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    host.plug_in("phone-1")
    host.earn_health()
    farm.submit()
    assert host.exchange().assignments
    return host


@pytest.mark.fault(43)
def test_one_process_has_the_leader_lease_and_keeps_it(shared: FarmRig) -> None:
    first, second = duties(shared, "1"), duties(shared, "2")
    assert tick(shared, first, second) == [LeaseDecision.ACQUIRED, LeaseDecision.ELSEWHERE]
    assert tick(shared, first, second, for_s=600) == [LeaseDecision.RENEWED, LeaseDecision.ELSEWHERE]
    assert (first.is_leader, second.is_leader) == (True, False)
    assert len(shared.rows("SELECT * FROM events WHERE kind = 'leader_lease_acquired'")) == 1


def test_a_holder_that_is_gone_is_replaced_within_its_lease(shared: FarmRig) -> None:
    first, second = duties(shared, "1"), duties(shared, "2")
    tick(shared, first, second)
    began = shared.clock.now()
    while tick(shared, second) == [LeaseDecision.ELSEWHERE]:
        shared.clock.advance(EVERY_S)
    assert shared.clock.now() - began == timedelta(seconds=3 * EVERY_S)
    assert not first.is_leader
    assert tick(shared, first) == [LeaseDecision.ELSEWHERE]


def test_who_resigns_is_replaced_at_once(shared: FarmRig) -> None:
    first, second = duties(shared, "1"), duties(shared, "2")
    tick(shared, first, second)
    shared.write(first.resign)
    assert tick(shared, second, first) == [LeaseDecision.ACQUIRED, LeaseDecision.ELSEWHERE]
    # Late, and changes nothing.
    shared.write(first.resign)
    assert tick(shared, second) == [LeaseDecision.RENEWED]


def test_the_next_life_of_a_farm_on_sqlite_takes_over_at_once(sqlite_farm: FarmRig) -> None:
    tick(sqlite_farm, duties(sqlite_farm, "killed"))
    assert tick(sqlite_farm, duties(sqlite_farm, "next")) == [LeaseDecision.ACQUIRED]


def session_state(farm: FarmRig) -> str:
    (row,) = farm.rows("SELECT state FROM sessions")
    return str(row["state"])


@pytest.mark.invariant("I10")
def test_a_process_that_takes_over_counts_from_then(shared: FarmRig) -> None:
    busy_host(shared)
    first, second = duties(shared, "1"), duties(shared, "2")
    tick(shared, first, second)
    # The first is killed, and with it what its agents called; the second goes on ticking.
    tick(shared, second, for_s=15)
    taken_at = shared.clock.now()
    tick(shared, second, for_s=55)
    assert session_state(shared) == "live", "70 s without a call, of which 55 under the second"
    tick(shared, second, for_s=10)
    assert session_state(shared) == "silent"
    assert shared.clock.now() - taken_at <= timedelta(seconds=70)


@pytest.mark.invariant("I10")
@pytest.mark.fault(36)
def test_nothing_expires_while_no_process_reached_the_database(farm: FarmRig, host: HostRig) -> None:
    own = duties(farm, "1")
    tick(farm, own, for_s=20)
    farm.clock.advance(3600)
    tick(farm, own, for_s=55)
    assert session_state(farm) == "live"
    tick(farm, own, for_s=10)
    assert session_state(farm) == "silent"


@pytest.mark.invariant("I9")
def test_an_agent_that_is_gone_is_lost_while_processes_come_and_go(shared: FarmRig) -> None:
    busy_host(shared)
    own = duties(shared, "1")
    tick(shared, own)
    tick(shared, own, duties(shared, "2"), for_s=LOST_S)
    assert session_state(shared) == "lost"
    states = {row["state"] for row in shared.rows("SELECT state FROM attempts")}
    assert not states & set(LIVE_STATES)


@pytest.mark.invariant("I17")
@pytest.mark.fault(43)
def test_two_that_both_believe_they_hold_the_leader_lease_do_no_harm(shared: FarmRig) -> None:
    busy_host(shared)
    both = [duties(shared, str(number)) for number in range(2)]
    shared.clock.advance(LOST_S)
    for each in both:
        each.serving = serving_period_since(shared.clock.now() - timedelta(hours=1), every_s=EVERY_S)
        each.serving.at = shared.clock.now()
    at_once = threading.Barrier(2)

    def work(own: PeriodicLeader) -> None:
        at_once.wait()
        for _ in range(3):
            # Past the duty's row, as if each had taken it.
            shared.write(lambda connection: own.do(connection, shared.clock.now(), own.serving.since))

    threads = [threading.Thread(target=work, args=(each,)) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session_state(shared) == "lost"
    moves = shared.rows(
        "SELECT subject, subject_id, to_state, count(*) AS times FROM events"
        " WHERE subject IN ('session', 'attempt', 'job') GROUP BY 1, 2, 3"
    )
    assert "lost" in {row["to_state"] for row in moves}
    assert {row["times"] for row in moves} == {1}
