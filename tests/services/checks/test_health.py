"""How a phone's health is earned, lost and asked for again."""

import pytest

from farm.core.checks.check_schedule import RECHECK_AFTER
from farm.core.devices.device import Presence
from farm.core.errors import Blame
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.retry import LONGEST_PAUSE, MAX_RETURNS
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    device_trouble,
    ended,
    good_evidence,
    phase,
    plan_of,
)


def health(farm: FarmRig, device_id: str = "phone-1") -> str:
    return farm.rows("SELECT health FROM devices WHERE device_id = :id", id=device_id)[0]["health"]


def the_check(host: HostRig) -> Assignment:
    (assignment,) = host.exchange().assignments
    assert plan_of(assignment).harness == "device_check"
    return assignment


@pytest.mark.invariant("I14")
def test_a_check_that_the_host_spoiled_says_nothing_and_is_made_again_later(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-1")
    assert host.run(lambda check: device_trouble(check, Blame.HOST)) == 4
    assert health(farm) == "unknown"
    assert host.exchange().assignments == ()
    farm.clock.advance(RECHECK_AFTER.total_seconds())
    host.exchange()
    host.earn_health()
    assert health(farm) == "good"


@pytest.mark.invariant("I13", "I16")
def test_a_check_that_is_deferred_too_often_is_made_again_later(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-1")
    for _ in range(MAX_RETURNS):
        check = the_check(host)
        host.clean(check)
        host.exchange([phase(check, AttemptState.RETURNED, "the phone is away")])
        farm.clock.advance(LONGEST_PAUSE.total_seconds())
    assert health(farm) == "unknown"
    farm.clock.advance(RECHECK_AFTER.total_seconds())
    host.exchange()
    host.earn_health()
    assert health(farm) == "good"


@pytest.mark.invariant("I14")
def test_a_phone_that_is_lost_during_its_checks_is_bad(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-1")
    assert host.run(device_trouble) == 3
    assert health(farm) == "bad"


def test_one_failure_after_a_passed_check_is_not_held_against_the_phone(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=2)
    troubles = iter([True] * 3 + [False, False] + [True] + [False] * 20)

    def answer(assignment: Assignment):
        is_check = plan_of(assignment).harness == "device_check"
        return device_trouble(assignment) if not is_check and next(troubles) else good_evidence(assignment)

    host.run(answer)
    checks = farm.rows("SELECT count(*) n FROM jobs WHERE kind = 'check' AND device_id = 'phone-1'")
    assert checks == [{"n": 2}]
    assert health(farm) == "good"


@pytest.mark.invariant("I9", "I13")
def test_an_attempt_its_agent_let_go_of_is_tried_again(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    (assignment,) = host.exchange().assignments
    host.exchange([phase(assignment, AttemptState.REPORTING)])
    host.clean(assignment)
    # Its report was refused for good, say.
    (again,) = host.exchange().assignments
    assert again.attempt_id != assignment.attempt_id
    assert farm.rows("SELECT code FROM attempts WHERE code IS NOT NULL") == [{"code": "host.let_go"}]
    host.report(again.attempt_id, good_evidence(again))
    host.clean(again)
    host.run()
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": 2}


@pytest.mark.invariant("I21")
def test_a_phone_is_not_taken_from_its_host_by_one_that_cannot_reach_it(farm: FarmRig, host: HostRig) -> None:
    other = farm.host("bench-2")
    seen = host.phones["phone-1"]
    for presence in (Presence.UNAUTHORIZED, Presence.OFFLINE, Presence.ONLINE):
        other.phones["phone-1"] = seen.model_copy(update={"presence": presence})
        other.exchange()
    host.phones["phone-1"] = seen.model_copy(update={"presence": Presence.OFFLINE})
    host.exchange()
    other.phones["phone-1"] = seen.model_copy(update={"presence": Presence.UNAUTHORIZED})
    other.exchange()
    owner = "SELECT host_id FROM devices WHERE device_id = 'phone-1'"
    assert farm.rows(owner) == [{"host_id": "bench-1"}]
    other.phones["phone-1"] = seen
    other.exchange()
    assert farm.rows(owner) == [{"host_id": "bench-2"}]


@pytest.mark.invariant("I7", "I13")
def test_an_unstarted_grant_of_a_lost_host_leaves_its_phone_free(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    host.exchange()  # the answer is lost
    farm.clock.advance(400)
    farm.reap()
    host.restart()
    (order,) = host.exchange().clean_ups
    before = host.phones["phone-1"]
    host.phones["phone-1"] = before.model_copy(update={"cleaned_fence": order.fence})
    host.run()
    assert farm.rows("SELECT DISTINCT outcome FROM jobs") == [{"outcome": "succeeded"}]


@pytest.mark.invariant("I5", "I9")
@pytest.mark.parametrize("silent_s", [150, 400])
def test_a_grant_whose_host_is_cut_off_counts_when_it_was_run(
    farm: FarmRig, host: HostRig, silent_s: float
) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    (assignment,) = host.exchange().assignments
    # The run begins, and its host cannot say so.
    farm.clock.advance(silent_s)
    farm.reap()
    assert not farm.rows("SELECT * FROM attempts WHERE state = 'returned'")
    assert host.report(assignment.attempt_id, good_evidence(assignment)).counted


def test_a_grant_that_an_agent_calls_without_starting_is_taken_back(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    (assignment,) = host.exchange().assignments
    farm.clock.advance(121)
    claimed = [phase(assignment, AttemptState.CLAIMED)]
    host.exchange(claimed)
    farm.reap()
    assert farm.rows("SELECT state FROM attempts WHERE state = 'returned'") == [{"state": "returned"}]


@pytest.mark.invariant("I14")
def test_a_bad_phone_gets_nothing_of_what_waits_for_it(farm: FarmRig) -> None:
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    host.plug_in("phone-1")
    (check,) = host.exchange().assignments
    farm.submit(rounds=1)
    host.report(check.attempt_id, ended(check, "shell_exit 0\n", code=23))
    host.clean(check)
    assert host.exchange().assignments == ()
    assert host.exchange().assignments == ()
