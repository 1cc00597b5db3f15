"""Runs whose agent was not heard for long, and phones that turn up elsewhere meanwhile."""

import pytest

from farm.core.devices.device import Presence
from farm.core.errors import SessionFenced
from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import FarmRig, HostRig, device_trouble, good_evidence, phase, plan_of


def begun(farm: FarmRig, host: HostRig) -> Assignment:
    """A run that is being measured on the first phone, the only one of its matrix."""
    farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    (run,) = host.exchange().assignments
    host.exchange([phase(run, AttemptState.MEASURING)])
    return run


def be_quiet(farm: FarmRig, seconds: float) -> None:
    farm.clock.advance(seconds)
    farm.reap()
    farm.reap()


def fences(farm: FarmRig) -> tuple[int, int]:
    (row,) = farm.rows("SELECT fence, cleaned_fence FROM devices WHERE device_id = 'phone-1'")
    return row["fence"], row["cleaned_fence"]


def clean(host: HostRig, fence: int) -> None:
    host.phones["phone-1"] = host.phones["phone-1"].model_copy(update={"cleaned_fence": fence})


@pytest.mark.invariant("I4", "I6")
@pytest.mark.fault(25)
def test_a_run_goes_on_and_counts_though_its_agent_was_given_up(farm: FarmRig, host: HostRig) -> None:
    run = begun(farm, host)
    be_quiet(farm, 600)
    with pytest.raises(SessionFenced):
        host.exchange([phase(run, AttemptState.MEASURING)])
    answer = host.restart([phase(run, AttemptState.MEASURING)])
    assert [(order.attempt_id, order.do) for order in answer.orders] == [(run.attempt_id, "continue")]
    listed = host.exchange([phase(run, AttemptState.MEASURING)])
    assert [(each.attempt_id, each.plan) for each in listed.assignments] == [(run.attempt_id, None)]
    assert listed.clean_ups == ()
    assert host.report(run.attempt_id, good_evidence(run)).counted
    clean(host, run.fence)
    # Nobody saw the phone for ten minutes: it is checked before the next job.
    (check,) = host.exchange().assignments
    assert plan_of(check).harness == "device_check"
    states = farm.rows("SELECT state, outcome FROM attempts WHERE attempt_id = :id", id=run.attempt_id)
    assert states == [{"state": "finished", "outcome": "succeeded"}]


@pytest.mark.fault(25)
def test_a_run_whose_phone_was_cleaned_in_between_does_not_go_on(farm: FarmRig, host: HostRig) -> None:
    run = begun(farm, host)
    be_quiet(farm, 600)
    host.restart()
    clean(host, run.fence)
    host.exchange()
    answer = host.restart([phase(run, AttemptState.MEASURING)])
    assert [order.do for order in answer.orders] == ["abandon"]


@pytest.mark.invariant("I16")
@pytest.mark.fault(25)
def test_what_was_only_being_prepared_when_its_agent_was_given_up_is_begun_again(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    (run,) = host.exchange().assignments
    host.exchange([phase(run, AttemptState.PREPARING)])
    be_quiet(farm, 600)
    answer = host.restart([phase(run, AttemptState.PREPARING)])
    assert [order.do for order in answer.orders] == ["abandon"]


@pytest.mark.fault(38)
def test_five_minutes_of_silence_cost_a_run_nothing(farm: FarmRig, host: HostRig) -> None:
    run = begun(farm, host)
    be_quiet(farm, 290)
    assert [each.attempt_id for each in host.exchange([phase(run, AttemptState.MEASURING)]).assignments] == [
        run.attempt_id
    ]
    assert host.report(run.attempt_id, good_evidence(run)).counted
    assert farm.rows("SELECT count(*) n FROM attempts WHERE blame IS NOT NULL") == [{"n": 0}]


@pytest.mark.invariant("I3", "I11")
@pytest.mark.fault(39)
def test_an_exchange_that_comes_late_and_twice_changes_nothing(farm: FarmRig, host: HostRig) -> None:
    run = begun(farm, host)
    old = host.seq
    host.report(run.attempt_id, good_evidence(run))
    host.clean(run)
    host.exchange()
    before = farm.rows("SELECT * FROM attempts"), farm.rows("SELECT heartbeat_at FROM sessions")
    farm.clock.advance(30)
    host.seq -= 1
    host.exchange([phase(run, AttemptState.MEASURING)], seq=old)
    assert (farm.rows("SELECT * FROM attempts"), farm.rows("SELECT heartbeat_at FROM sessions")) == before


@pytest.mark.invariant("I3", "I8", "I21")
@pytest.mark.fault(22)
def test_a_phone_that_moved_while_its_host_was_silent_starts_afresh_there(
    farm: FarmRig, host: HostRig
) -> None:
    run = begun(farm, host)
    before, _ = fences(farm)
    be_quiet(farm, 90)
    second = farm.host("bench-2")
    second.plug_in("phone-1")
    (clean_up,) = second.exchange().clean_ups
    assert (clean_up.fence, fences(farm)[0]) == (before + 1, before + 1)
    lost = farm.rows("SELECT state, code, blame FROM attempts WHERE attempt_id = :id", id=run.attempt_id)
    assert lost == [{"state": "lost", "code": "host.device_moved", "blame": "host"}]
    (event,) = farm.rows("SELECT from_state, to_state, cause FROM events WHERE kind = 'device_fence_raised'")
    assert (event["from_state"], event["to_state"]) == (str(before), str(before + 1))
    assert second.exchange().assignments == ()
    clean(second, clean_up.fence)
    (check,) = second.exchange().assignments
    assert check.fence == before + 2
    # The old agent is back, and still believes that it has the phone.
    answer = host.exchange([phase(run, AttemptState.MEASURING)])
    assert answer.assignments == ()
    assert fences(farm) == (before + 2, before + 1)


@pytest.mark.invariant("I4")
@pytest.mark.fault(22)
def test_what_the_old_host_reports_counts_while_nothing_took_its_place_and_is_kept_in_any_case(
    farm: FarmRig, host: HostRig
) -> None:
    run = begun(farm, host)
    be_quiet(farm, 90)
    second = farm.host("bench-2")
    second.plug_in("phone-1")
    (clean_up,) = second.exchange().clean_ups
    clean(second, clean_up.fence)
    (check,) = second.exchange().assignments
    second.report(check.attempt_id, good_evidence(check))
    second.clean(check)
    (again,) = second.exchange().assignments
    assert again.job_id == run.job_id
    late = host.report(run.attempt_id, good_evidence(run, sample_us=1.0))
    assert not late.counted
    assert second.report(again.attempt_id, good_evidence(again)).counted
    kept = farm.rows("SELECT counted FROM evidence WHERE attempt_id = :id", id=run.attempt_id)
    assert [bool(row["counted"]) for row in kept] == [False]


@pytest.mark.invariant("I15")
@pytest.mark.fault(22)
def test_a_run_that_a_takeover_ended_is_not_held_against_its_phone(farm: FarmRig, host: HostRig) -> None:
    run = begun(farm, host)
    be_quiet(farm, 90)
    second = farm.host("bench-2")
    second.plug_in("phone-1")
    second.exchange()
    # What the old agent saw: its run was gone all of a sudden.
    assert host.report(run.attempt_id, device_trouble(run)).counted
    ended = farm.rows("SELECT code, blame FROM attempts WHERE attempt_id = :id", id=run.attempt_id)
    assert ended == [{"code": "host.device_moved", "blame": "host"}]
    assert farm.rows("SELECT state FROM jobs WHERE job_id = :id", id=run.job_id) == [{"state": "queued"}]


@pytest.mark.invariant("I8", "I21")
@pytest.mark.fault(22)
def test_a_host_that_only_sees_a_phone_does_not_end_the_run_of_one_that_is_silent(
    farm: FarmRig, host: HostRig
) -> None:
    run = begun(farm, host)
    be_quiet(farm, 90)
    second = farm.host("bench-2")
    second.plug_in("phone-1")
    second.phones["phone-1"] = second.phones["phone-1"].model_copy(update={"presence": Presence.OFFLINE})
    second.exchange()
    assert host.exchange([phase(run, AttemptState.MEASURING)]).assignments
    assert host.report(run.attempt_id, good_evidence(run)).counted


@pytest.mark.invariant("I7", "I9", "I13")
@pytest.mark.fault(27)
def test_after_a_power_cut_pinned_jobs_wait_and_phones_are_cleaned_and_checked_first(
    farm: FarmRig, host: HostRig
) -> None:
    run = begun(farm, host)
    be_quiet(farm, 600)
    assert farm.rows("SELECT state FROM jobs WHERE job_id = :id", id=run.job_id) == [{"state": "queued"}]
    # The machine is back, and its agent remembers nothing.
    host.restart()
    (clean_up,) = host.exchange().clean_ups
    assert clean_up.fence == run.fence
    clean(host, run.fence)
    (check,) = host.exchange().assignments
    assert plan_of(check).harness == "device_check"
    host.report(check.attempt_id, good_evidence(check))
    host.clean(check)
    assert host.run() == 2


@pytest.mark.invariant("I14")
@pytest.mark.fault(22)
def test_a_check_at_the_host_that_a_phone_left_says_nothing_of_it_at_the_next(
    farm: FarmRig, host: HostRig
) -> None:
    host.plug_in("phone-3")
    (check,) = host.exchange().assignments
    host.exchange([phase(check, AttemptState.MEASURING)])
    be_quiet(farm, 90)
    second = farm.host("bench-2")
    second.plug_in("phone-3")
    second.exchange()
    assert not host.report(check.attempt_id, good_evidence(check)).counted
    assert farm.rows("SELECT health FROM devices WHERE device_id = 'phone-3'") == [{"health": "unknown"}]


@pytest.mark.invariant("I21")
def test_a_second_host_that_has_a_phone_is_refused_and_shown_once_a_minute(
    farm: FarmRig, host: HostRig
) -> None:
    second = farm.host("bench-2")
    second.plug_in("phone-1")
    for _ in range(3):
        host.exchange()
        second.exchange()
        farm.clock.advance(25)
    refused = "SELECT subject_id, actor, cause FROM events WHERE kind = 'device_claim_refused'"
    assert farm.rows(refused) == [
        {
            "subject_id": "phone-1",
            "actor": "agent:bench-2",
            "cause": "host bench-2 has it online, too: it stays with bench-1",
        }
    ]
    farm.clock.advance(25)
    second.exchange()
    assert len(farm.rows(refused)) == 2


@pytest.mark.invariant("I21")
def test_a_host_that_misses_a_phone_does_not_take_it_from_one_that_is_gone(
    farm: FarmRig, host: HostRig
) -> None:
    be_quiet(farm, 600)
    second = farm.host("bench-2")
    second.plug_in("phone-1")
    second.phones["phone-1"] = second.phones["phone-1"].model_copy(update={"presence": Presence.ABSENT})
    second.exchange()
    assert farm.rows("SELECT host_id FROM devices WHERE device_id = 'phone-1'") == [{"host_id": "bench-1"}]
