"""A job that its agent puts off, because its phone is not fit, is tried again after ever longer pauses."""

import pytest

from farm.core.base.ids import JobId
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.retry import FIRST_PAUSE, LONGEST_PAUSE, MAX_RETURNS
from farm.database.transaction import bind_tx
from farm.presentation.device_state import find_remedy
from farm.services.checks.device_detail import device_detail
from farm.services.checks.requested import request_check
from farm.services.jobs.pending_reasons import job_waiting
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, phase

FULL = "188 MiB free, at least 256 MiB"
LOW = "battery 9 %, at least 20 %"


def submit(farm: FarmRig) -> None:
    farm.submit(
        axes={"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"},
        devices={"device": "phone-1"},
        baseline=None,
        rounds=1,
        gates={"wait_s": 0},
    )


def put_off(host: HostRig, assignment: Assignment, reason: str = LOW) -> tuple[Assignment, ...]:
    """Give a job back, have the phone cleaned, and see what there is to do at once."""
    host.exchange([phase(assignment, AttemptState.RETURNED, reason)])
    host.clean(assignment)
    return tuple(host.exchange().assignments)


def claimed(farm: FarmRig, host: HostRig, *, after_s: float) -> Assignment:
    """The next assignment, which comes after a pause of so long and not before."""
    farm.clock.advance(after_s - 0.5)
    assert host.exchange().assignments == ()
    farm.clock.advance(0.5)
    (assignment,) = host.exchange().assignments
    return assignment


@pytest.mark.fault(47)
def test_a_phone_that_is_not_fit_is_asked_with_increasing_back_off_and_the_job_ends_after_an_hour(
    farm: FarmRig, host: HostRig
) -> None:
    submit(farm)
    (assignment,) = host.exchange().assignments
    began_at, pauses_s = farm.clock.now(), [5, 10, 20, 40, 80, 160, *[300] * (MAX_RETURNS - 7)]
    for pause_s in pauses_s:
        assert put_off(host, assignment) == ()
        assignment = claimed(farm, host, after_s=pause_s)
    assert (farm.clock.now() - began_at).total_seconds() > 3600
    assert put_off(host, assignment) == ()
    (job,) = farm.rows("SELECT outcome, code, message FROM jobs WHERE kind = 'benchmark'")
    assert (job["outcome"], job["code"]) == ("inconclusive", "job.deferred")
    assert job["message"] == f"deferred {MAX_RETURNS} times, last because {LOW}"


@pytest.mark.fault(47)
def test_why_a_job_that_was_deferred_waits_says_until_when(farm: FarmRig, host: HostRig) -> None:
    submit(farm)
    (assignment,) = host.exchange().assignments
    until = farm.clock.now() + FIRST_PAUSE
    put_off(host, assignment)
    (reason,) = farm.read(job_waiting, assignment.job_id).reasons
    assert (reason.code, reason.passes, reason.cause) == ("deferred", True, LOW)
    assert reason.message == f"it was deferred once, and may be tried again from {until:%H:%M:%S} UTC on"


def test_jobs_that_wait_for_a_deferred_check_and_the_device_say_why_it_was_deferred(farm: FarmRig) -> None:
    farm.variant("float32")
    host = farm.host()
    host.plug_in("phone-1")
    (check,) = host.exchange().assignments
    submit(farm)
    until = farm.clock.now() + FIRST_PAUSE
    host.exchange([phase(check, AttemptState.RETURNED, FULL)])
    host.clean(check)
    host.exchange()
    (job,) = farm.rows("SELECT job_id FROM jobs WHERE kind = 'benchmark'")
    reasons = farm.read(job_waiting, JobId(job["job_id"])).reasons
    assert [reason.code for reason in reasons] == ["health_unknown", "deferred"]
    assert reasons[1].message.startswith(
        f"its check was deferred once, and may be tried again from {until:%H}"
    )
    assert reasons[1].cause == FULL
    view = farm.read(device_detail, "phone-1")
    assert view.why == f"its check is deferred: {FULL}"
    assert view.attempts[0].message == FULL
    assert find_remedy(view) == f"phone-1: its check is deferred: {FULL}"
    farm.clock.advance(LONGEST_PAUSE.total_seconds())
    host.exchange()
    host.earn_health()
    assert farm.read(device_detail, "phone-1").why is None
    assert [reason.code for reason in farm.read(job_waiting, JobId(job["job_id"])).reasons] == []


def test_the_time_that_an_agent_waited_for_the_gates_is_part_of_the_pause(
    farm: FarmRig, host: HostRig
) -> None:
    submit(farm)
    (assignment,) = host.exchange().assignments
    farm.clock.advance(LONGEST_PAUSE.total_seconds() / 10)
    assert len(put_off(host, assignment)) == 1


def test_a_check_does_not_wait_for_a_job_that_pauses(farm: FarmRig, host: HostRig) -> None:
    submit(farm)
    (assignment,) = host.exchange().assignments
    assert put_off(host, assignment) == ()
    farm.write(bind_tx(request_check, now=farm.clock.now()), "phone-1", OperatorRequest(by="ann"))
    (check,) = host.exchange().assignments
    assert check.job_id != assignment.job_id


def test_what_the_farm_takes_back_unstarted_is_given_out_again_at_once(farm: FarmRig, host: HostRig) -> None:
    submit(farm)
    (assignment,) = host.exchange().assignments
    host.restart()
    host.clean(assignment)
    (again,) = host.exchange().assignments
    assert again.job_id == assignment.job_id
