"""What hits several phones of a host at once is held against the host, and against none of them."""

from dataclasses import replace

import pytest

from farm.core.base.ids import DeviceId
from farm.core.checks.failures import FIRST_LISTING, MAX_DURATION, QUIET_AFTER, WINDOW
from farm.core.devices.device import Presence
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.services.devices.admin import retire
from farm.store.jobs import jobs
from farm.wire.agents.protocol import Assignment, Exchange
from farm.wire.documents.devices import OperatorRequest
from tests.services.conftest import on_sqlite_alone
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    device_trouble,
    ended,
    good_evidence,
    phase,
    plan_of,
)

PHONES = ("phone-1", "phone-2", "phone-3")


@pytest.fixture
def three(farm: FarmRig, host: HostRig) -> HostRig:
    """The host with a third phone."""
    host.plug_in("phone-3")
    host.earn_health()
    return host


def put(host: HostRig, presence: Presence, *devices: str) -> None:
    for device_id in devices:
        host.phones[device_id] = host.phones[device_id].model_copy(update={"presence": presence})


def incidents(farm: FarmRig) -> list[tuple[str, bool]]:
    rows = farm.rows("SELECT kind, ended_at FROM incidents ORDER BY incident_id")
    return [(row["kind"], row["ended_at"] is None) for row in rows]


def health(farm: FarmRig) -> set[str]:
    return {row["health"] for row in farm.rows("SELECT health FROM devices")}


def lost(assignment: Assignment, code: str = "device.lost") -> Evidence:
    evidence = device_trouble(assignment)
    assert evidence.error is not None
    return replace(evidence, error=replace(evidence.error, code=code))


def rest(farm: FarmRig, host: HostRig) -> None:
    """Let whatever happened be long ago."""
    farm.clock.advance(WINDOW.total_seconds() + 1)
    host.exchange()
    farm.reap()


def test_phones_that_a_restarted_agent_has_not_found_yet_are_no_incident(
    farm: FarmRig, three: HostRig
) -> None:
    rest(farm, three)
    three.restart()
    put(three, Presence.ABSENT, *PHONES)
    three.exchange()
    put(three, Presence.ONLINE, *PHONES)
    three.exchange()
    assert incidents(farm) == []
    farm.clock.advance(FIRST_LISTING.total_seconds() + 1)
    put(three, Presence.ABSENT, "phone-1", "phone-2")
    three.exchange()
    assert incidents(farm) == [("correlated_failures", True)]


@pytest.mark.invariant("I15")
@pytest.mark.fault(19)
def test_phones_that_drop_together_are_an_incident_that_ends_when_they_are_back(
    farm: FarmRig, three: HostRig
) -> None:
    rest(farm, three)
    put(three, Presence.ABSENT, "phone-1", "phone-2")
    three.exchange()
    assert incidents(farm) == [("correlated_failures", True)]
    put(three, Presence.ONLINE, "phone-1", "phone-2")
    three.exchange()
    farm.reap()
    assert incidents(farm) == [("correlated_failures", True)]
    rest(farm, three)
    assert incidents(farm) == [("correlated_failures", False)]
    told = farm.rows("SELECT kind FROM events WHERE subject = 'incident' ORDER BY event_id")
    assert [row["kind"] for row in told] == ["incident_opened", "incident_ended"]


def test_phones_that_stay_away_end_an_incident_after_a_while(farm: FarmRig, three: HostRig) -> None:
    rest(farm, three)
    for device_id in PHONES:
        del three.phones[device_id]
    three.exchange()
    rest(farm, three)
    assert incidents(farm) == [("correlated_failures", True)]
    for _ in range(int(QUIET_AFTER.total_seconds() // 50)):
        farm.clock.advance(50)
        three.exchange()
    farm.reap()
    assert incidents(farm) == [("correlated_failures", False)]


@pytest.mark.long
@on_sqlite_alone
def test_a_phone_that_comes_and_goes_for_ever_ends_an_incident_after_a_day(
    farm: FarmRig, three: HostRig
) -> None:
    rest(farm, three)
    put(three, Presence.ABSENT, "phone-1", "phone-2")
    three.exchange()
    put(three, Presence.ONLINE, "phone-2")
    calls = int(MAX_DURATION / QUIET_AFTER) * 2
    for _ in range(calls - 1):
        put(three, Presence.ONLINE, "phone-1")
        three.exchange()
        farm.clock.advance(MAX_DURATION.total_seconds() / calls)
        put(three, Presence.ABSENT, "phone-1")
        three.exchange()
    farm.reap()
    assert incidents(farm) == [("correlated_failures", True)]
    farm.clock.advance(MAX_DURATION.total_seconds() / calls)
    three.exchange()
    farm.reap()
    assert incidents(farm) == [("correlated_failures", False)]
    (told,) = farm.rows("SELECT cause FROM events WHERE kind = 'incident_ended'")
    assert told["cause"] == "bench-1: 1 of its phones stay away"


def test_a_phone_that_is_retired_is_not_waited_for(farm: FarmRig, three: HostRig) -> None:
    rest(farm, three)
    put(three, Presence.ABSENT, "phone-1", "phone-2")
    three.exchange()
    put(three, Presence.ONLINE, "phone-2")
    three.exchange()
    farm.write(
        bind_tx(retire, now=farm.clock.now()), "phone-1", OperatorRequest(by="ann", reason="it is gone")
    )
    rest(farm, three)
    assert incidents(farm) == [("correlated_failures", False)]


@pytest.mark.invariant("I15")
def test_one_phone_of_three_that_drops_is_its_own_affair(farm: FarmRig, three: HostRig) -> None:
    rest(farm, three)
    put(three, Presence.OFFLINE, "phone-1")
    three.exchange()
    put(three, Presence.BOOTING, "phone-2", "phone-3")
    three.exchange()
    assert incidents(farm) == []


@pytest.mark.invariant("I15")
@pytest.mark.fault(19)
def test_runs_that_an_incident_ends_are_blamed_on_the_host_and_cost_no_phone_its_health(
    farm: FarmRig, three: HostRig
) -> None:
    matrix_id = farm.submit(rounds=1)
    rest(farm, three)
    for _ in range(3):
        assignments = three.exchange().assignments
        three.exchange([phase(each, AttemptState.MEASURING) for each in assignments])
        put(three, Presence.OFFLINE, *PHONES)
        three.exchange([phase(each, AttemptState.MEASURING) for each in assignments])
        farm.clock.advance(90)
        for each in assignments:
            three.report(each.attempt_id, lost(each))
            three.clean(each)
        put(three, Presence.ONLINE, *PHONES)
        rest(farm, three)
    ended = farm.rows("SELECT DISTINCT code, blame FROM attempts WHERE blame IS NOT NULL")
    assert ended == [{"code": "host.incident", "blame": "host"}]
    assert health(farm) == {"good"}
    three.run()
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": 6}


@pytest.mark.invariant("I15")
def test_failures_that_counted_before_the_incident_was_seen_are_forgiven(
    farm: FarmRig, three: HostRig
) -> None:
    farm.submit(rounds=5, devices={"device_id": "phone-1"})
    rest(farm, three)
    for _ in range(3):
        (assignment,) = three.exchange().assignments
        assert plan_of(assignment).harness != "device_check"
        three.report(assignment.attempt_id, lost(assignment, "device.timeout"))
        three.clean(assignment)
    assert farm.rows("SELECT health FROM devices WHERE device_id = 'phone-1'") == [{"health": "suspect"}]
    put(three, Presence.OFFLINE, "phone-2")
    three.exchange()
    assert incidents(farm) == [("correlated_failures", True)]
    assert health(farm) == {"good"}


@pytest.mark.fault(4)
def test_a_phone_that_started_again_is_to_blame_and_checked_whatever_its_host_does(
    farm: FarmRig, three: HostRig
) -> None:
    farm.submit(rounds=1, devices={"device_id": "phone-1"})
    rest(farm, three)
    (assignment,) = three.exchange().assignments
    put(three, Presence.OFFLINE, *PHONES)
    three.exchange([phase(assignment, AttemptState.MEASURING)])
    three.report(assignment.attempt_id, lost(assignment, "device.rebooted"))
    three.clean(assignment)
    assert farm.rows("SELECT blame FROM attempts WHERE blame IS NOT NULL") == [{"blame": "device"}]
    put(three, Presence.ONLINE, *PHONES)
    (check,) = three.exchange().assignments
    assert plan_of(check).harness == "device_check"


@pytest.mark.invariant("I15")
def test_a_check_that_an_incident_spoils_says_nothing_of_the_phone(farm: FarmRig) -> None:
    host = farm.host()
    for device_id in ("phone-1", "phone-2"):
        host.plug_in(device_id)
    checks = host.exchange().assignments
    for each in checks:
        host.report(each.attempt_id, lost(each, "device.offline"))
        host.clean(each)
    assert incidents(farm) == [("correlated_failures", True)]
    host.run(good_evidence)
    assert health(farm) == {"good"}


@pytest.mark.fault(18)
def test_a_host_under_pressure_says_so_until_it_is_over(farm: FarmRig, host: HostRig) -> None:
    for pressure in ("no room on its disk", "no room on its disk", "its adb server keeps dying", None):
        host.seq += 1
        said = Exchange(seq=host.seq, devices=tuple(host.phones.values()), pressure=pressure)
        host.call(said)
    rows = farm.rows("SELECT cause, ended_at FROM incidents ORDER BY incident_id")
    assert [row["cause"] for row in rows] == ["no room on its disk", "its adb server keeps dying"]
    assert all(row["ended_at"] is not None for row in rows)


@pytest.mark.invariant("I14")
def test_a_phone_that_failed_its_check_in_an_incident_is_not_forgiven_with_the_next_one_hit(
    farm: FarmRig, three: HostRig
) -> None:
    rest(farm, three)
    put(three, Presence.OFFLINE, "phone-1", "phone-2")
    three.exchange()
    farm.write(bind_tx(jobs.add_check, now=farm.clock.now()), DeviceId("phone-1"), cause="it looks worn")
    put(three, Presence.ONLINE, "phone-1")
    (check,) = three.exchange().assignments
    three.report(check.attempt_id, ended(check, "shell_exit 1\n", code=23))
    three.clean(check)
    assert health_of(farm, "phone-1") == "bad"
    put(three, Presence.OFFLINE, "phone-3")
    three.exchange()
    (incident,) = farm.rows("SELECT devices FROM incidents")
    assert "phone-3" in str(incident["devices"])
    assert health_of(farm, "phone-1") == "bad"


def health_of(farm: FarmRig, device_id: str) -> str:
    (row,) = farm.rows("SELECT health FROM devices WHERE device_id = :id", id=device_id)
    return str(row["health"])
