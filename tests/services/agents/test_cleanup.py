"""A phone goes to the next attempt only when nothing of the last one is left on it."""

import pytest

from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import Exchange
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phase, plan_of


@pytest.mark.invariant("I7")
def test_a_phone_gets_no_work_until_it_is_clean_up_to_its_last_claim(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    (assignment,) = host.exchange().assignments
    host.report(assignment.attempt_id, good_evidence(assignment))
    assert host.exchange().assignments == ()
    host.clean(assignment.model_copy(update={"fence": assignment.fence - 1}))
    assert host.exchange().assignments == ()
    host.clean(assignment)
    assert len(host.exchange().assignments) == 1


@pytest.mark.invariant("I3", "I7", "I13")
def test_an_agent_that_lost_its_folder_does_not_take_a_confirmed_clean_up_back(
    farm: FarmRig, host: HostRig
) -> None:
    """It knows of no clean-up, and reports more that is new: the device's state is written."""
    farm.submit(devices={"device_id": "phone-1"})
    (assignment,) = host.exchange().assignments
    host.report(assignment.attempt_id, good_evidence(assignment))
    host.clean(assignment)
    host.call(Exchange(seq=10, devices=tuple(host.phones.values()), pressure="its disk is full"))
    forgot = {"cleaned_fence": 0, "serial": "another transport"}
    host.phones["phone-1"] = host.phones["phone-1"].model_copy(update=forgot)
    host.restart()
    answer = host.exchange()
    assert answer.clean_ups == ()
    assert [each.fence for each in answer.assignments] == [assignment.fence + 1]


@pytest.mark.invariant("I7", "I13")
@pytest.mark.fault(31)
def test_an_attempt_its_agent_never_received_leaves_the_phone_free(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    host.exchange()  # the answer is lost, and the agent restarts with an empty journal
    host.restart()
    (again,) = host.exchange().assignments
    assert host.report(again.attempt_id, good_evidence(again)).counted


@pytest.mark.invariant("I7")
def test_an_attempt_that_was_returned_is_waited_for_while_the_agent_holds_it(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    (assignment,) = host.exchange().assignments
    held = phase(assignment, AttemptState.PREPARING)
    host.restart([held])
    assert host.exchange([held]).assignments == ()
    assert len(host.exchange().assignments) == 1


@pytest.mark.invariant("I7", "I8")
@pytest.mark.fault(23, 26)
def test_a_phone_that_knows_the_token_of_what_was_returned_is_cleaned_up_first(
    farm: FarmRig, host: HostRig
) -> None:
    """The run began, its agent's word of that was lost, and so was its journal."""
    farm.submit(devices={"device_id": "phone-1"})
    (begun,) = host.exchange().assignments
    host.restart()
    before = host.phones["phone-1"]
    host.phones["phone-1"] = before.model_copy(update={"known_fence": begun.fence})
    answer = host.exchange()
    assert answer.assignments == ()
    assert [(each.device_id, each.fence) for each in answer.clean_ups] == [("phone-1", begun.fence)]
    host.clean(begun)
    assert len(host.exchange().assignments) == 1


@pytest.mark.invariant("I3")
@pytest.mark.fault(42)
def test_a_phone_ahead_of_the_database_raises_its_token(farm: FarmRig, host: HostRig) -> None:
    before = host.phones["phone-1"]
    host.phones["phone-1"] = before.model_copy(update={"cleaned_fence": 500})
    farm.submit(devices={"device_id": "phone-1"})
    (assignment,) = host.exchange().assignments
    assert assignment.fence == 501


@pytest.mark.invariant("I7", "I13")
@pytest.mark.fault(22)
def test_a_phone_that_no_one_cleans_up_after_a_lost_attempt_is_named_until_its_new_host_did(
    farm: FarmRig, host: HostRig
) -> None:
    """The phone never heard of the attempt's token, and its new agent not of the attempt."""
    farm.submit(devices={"device_id": "phone-1"})
    (lost,) = host.exchange().assignments
    assert host.exchange([phase(lost, AttemptState.PREPARING)]).clean_ups == ()
    second = _takes_over(farm, host)
    known = second.phones["phone-1"].cleaned_fence
    assert known < lost.fence
    assert _listed(second) == [("phone-1", lost.fence + 1)]
    second.clean(lost)
    assert _listed(second) == [("phone-1", lost.fence + 1)], "until it is done to the token that was raised"
    clean(second, lost.fence + 1)
    answer = second.exchange()
    assert answer.clean_ups == ()
    (check,) = answer.assignments
    assert check.fence == lost.fence + 2


@pytest.mark.invariant("I7", "I13")
@pytest.mark.fault(22)
def test_what_an_attempt_left_that_ended_at_its_old_host_is_cleaned_up_at_the_new_one(
    farm: FarmRig, host: HostRig
) -> None:
    """A phone on TCP, say: the old agent comes back and reports, but has the phone no longer."""
    farm.submit(devices={"device_id": "phone-1"})
    (running,) = host.exchange().assignments
    host.exchange([phase(running, AttemptState.MEASURING)])
    farm.clock.advance(90)
    farm.reap()
    second = farm.host("bench-2")
    second.plug_in("phone-1")
    assert _listed(second) == [("phone-1", running.fence + 1)]
    assert host.report(running.attempt_id, good_evidence(running)).counted
    host.clean(running)
    host.exchange()
    assert _listed(second) == [("phone-1", running.fence + 1)]
    clean(second, running.fence + 1)
    assert len(second.exchange().assignments) == 1


@pytest.mark.invariant("I14", "I21")
@pytest.mark.fault(22)
def test_a_phone_that_moved_is_checked_before_it_gets_work(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    del host.phones["phone-1"]
    host.exchange()
    second = farm.host("bench-2")
    second.plug_in("phone-1")
    clean = farm.rows("SELECT cleaned_fence FROM devices WHERE device_id = 'phone-1'")[0]["cleaned_fence"]
    second.phones["phone-1"] = second.phones["phone-1"].model_copy(update={"cleaned_fence": clean})
    (check,) = second.exchange().assignments
    assert plan_of(check).harness == "device_check"
    (event,) = farm.rows("SELECT * FROM events WHERE kind = 'device_health_changed' AND to_state = 'unknown'")
    assert event["cause"] == "it moved from bench-1 to bench-2"


def _takes_over(farm: FarmRig, host: HostRig) -> HostRig:
    """The host is gone for good, and its phone hangs on another one."""
    farm.clock.advance(400)
    farm.reap()
    farm.reap()
    second = farm.host("bench-2")
    second.phones["phone-1"] = host.phones["phone-1"]
    return second


def clean(host: HostRig, fence: int) -> None:
    host.phones["phone-1"] = host.phones["phone-1"].model_copy(update={"cleaned_fence": fence})


def _listed(host: HostRig) -> list[tuple[str, int]]:
    return [(each.device_id, each.fence) for each in host.exchange().clean_ups]


@pytest.mark.invariant("I7", "I18")
def test_a_cpu_is_free_only_when_the_last_phone_on_it_is_clean(farm: FarmRig, host: HostRig) -> None:
    _share_a_cpu(host)
    farm.submit()
    (first,) = host.exchange().assignments
    host.report(first.attempt_id, good_evidence(first))
    assert host.exchange().assignments == ()
    host.clean(first)
    (second,) = host.exchange().assignments
    assert second.device_id != first.device_id


@pytest.mark.invariant("I13", "I18")
def test_a_phone_that_went_away_uncleaned_does_not_hold_the_cpu(farm: FarmRig, host: HostRig) -> None:
    _share_a_cpu(host)
    farm.submit()
    (first,) = host.exchange().assignments
    host.report(first.attempt_id, good_evidence(first))
    host.phones.pop(first.device_id)
    (second,) = host.exchange().assignments
    assert second.device_id != first.device_id


def _share_a_cpu(host: HostRig) -> None:
    for device_id in ("phone-1", "phone-2"):
        host.plug_in(device_id, cpu_domain="host-cpu")


@pytest.mark.fault(14)
def test_a_phone_that_cannot_be_cleaned_is_bad_and_its_event_says_what_lives_on(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    (assignment,) = host.exchange().assignments
    host.report(assignment.attempt_id, good_evidence(assignment))
    cause = "it cannot be cleaned up: supervisor: live on: 4711"
    host.phones["phone-1"] = host.phones["phone-1"].model_copy(update={"detail": cause})
    assert host.exchange().assignments == ()
    (event,) = farm.rows(
        "SELECT cause, from_state FROM events WHERE subject_id = 'phone-1' AND to_state = 'bad' "
        "AND kind = 'device_health_changed'"
    )
    assert event == {"cause": cause, "from_state": "good"}
