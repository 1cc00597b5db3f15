"""Why is it waiting? Each thing that can be in a job's way, brought about and told."""

import pytest

from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Presence
from farm.core.devices.host_state import HostEvent
from farm.core.errors import NotFound, SelectorEmpty
from farm.core.jobs.attempt import AttemptState
from farm.core.upkeep.device_action import DeviceActionKind
from farm.database.transaction import bind_tx
from farm.services.devices.admin import cancel_jobs_of_retired, change_admin, retire
from farm.services.devices.reservations import reserve
from farm.services.hosts.admin import change_host, limit_host
from farm.services.jobs.pending_reasons import devices_waiting, job_waiting, matrix_waiting
from farm.services.upkeep.device_actions import request_device_action
from farm.wire.agents.protocol import AttemptReport, Exchange
from farm.wire.documents.devices import OperatorRequest, ReservationRequest
from farm.wire.documents.hosts import LimitRequest
from farm.wire.documents.matrices.pending import DevicePendingView, JobPendingView, MatrixPendingView
from tests.support.database.sent_statements import sent_to
from tests.support.farm.service_fixture import FarmRig, HostRig, device_trouble, good_evidence, phase, phone


def first_job(farm: FarmRig, matrix_id: MatrixId, device: str = "phone-1") -> JobId:
    sql = "SELECT min(job_id) AS job FROM jobs WHERE matrix_id = :matrix AND device_id = :device"
    (row,) = farm.rows(sql, matrix=matrix_id, device=device)
    return JobId(row["job"])


def last_queued(farm: FarmRig, device: str = "phone-1") -> JobId:
    """The job that a phone gets to last."""
    where = "state = 'queued' AND kind = 'benchmark' AND device_id = :device"
    (row,) = farm.rows(f"SELECT max(job_id) AS job FROM jobs WHERE {where}", device=device)
    return JobId(row["job"])


def fail(host: HostRig, times: int) -> None:
    """Have attempts on phone-1 end by the phone's fault."""
    for _ in range(times):
        for assignment in host.exchange().assignments:
            if assignment.device_id == "phone-1":
                host.report(assignment.attempt_id, device_trouble(assignment))
                host.clean(assignment)
    host.exchange()


def why(farm: FarmRig, job_id: JobId) -> JobPendingView:
    return farm.read(job_waiting, job_id)


def codes(view: JobPendingView | DevicePendingView) -> list[str]:
    return [reason.code for reason in view.reasons]


def of_matrix(farm: FarmRig, matrix_id: MatrixId) -> MatrixPendingView:
    return farm.read(matrix_waiting, matrix_id)


@pytest.fixture
def job(farm: FarmRig, host: HostRig) -> JobId:
    """The first job of a matrix on a healthy phone that is free."""
    return first_job(farm, farm.submit(rounds=2))


def test_a_job_that_is_next_waits_for_nothing(farm: FarmRig, job: JobId) -> None:
    view = why(farm, job)
    assert (view.reasons, view.jobs_before, view.running) == ((), 0, None)
    assert view.since == farm.clock.now()


def test_a_cordoned_phone_is_told_with_who_since_when_why_and_what_to_do(farm: FarmRig, job: JobId) -> None:
    asked = OperatorRequest(by="ann", reason="swollen battery")
    cordoned_at = farm.clock.now()
    farm.write(bind_tx(change_admin, now=cordoned_at), "phone-1", AdminEvent.CORDONED, asked)
    farm.clock.advance(7200)
    (reason,) = why(farm, job).reasons
    assert (reason.code, reason.by, reason.cause) == ("cordoned", "user:ann", "swollen battery")
    assert reason.since == cordoned_at
    assert reason.hint == "farm device uncordon phone-1"
    assert not reason.passes


def test_a_held_phone_is_told_with_who_has_it(farm: FarmRig, job: JobId) -> None:
    farm.write(bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by="ann", for_s=600))
    (reason,) = why(farm, job).reasons
    assert (reason.code, reason.by) == ("reserved", "user:ann")
    assert "by ann until" in (reason.cause or "")


def test_behind_other_jobs_it_is_told_how_many_and_which_one_runs(
    farm: FarmRig, host: HostRig, job: JobId
) -> None:
    later = first_job(farm, farm.submit(rounds=1))
    running = {each.device_id: each for each in host.exchange().assignments}["phone-1"]
    view = why(farm, later)
    assert codes(view) == ["busy"]
    assert (view.jobs_before, view.more_before) == (3, False)
    assert view.running is not None
    assert (view.running.job_id, view.running.attempt_id) == (running.job_id, running.attempt_id)


def test_more_urgent_jobs_that_came_later_are_counted_too(farm: FarmRig, job: JobId) -> None:
    farm.submit(rounds=1, priority=5)
    assert why(farm, job).jobs_before == 2


def test_a_sick_phone_is_told_with_the_check_that_goes_before(
    farm: FarmRig, host: HostRig, job: JobId
) -> None:
    farm.submit(rounds=5)
    fail(host, 3)
    view = why(farm, last_queued(farm))
    assert codes(view) == ["health_suspect", "busy"]
    assert view.reasons[0].passes
    assert view.running is not None
    assert view.running.matrix_id is None


def test_a_bad_phone_waits_for_a_person(farm: FarmRig, host: HostRig, job: JobId) -> None:
    farm.submit(rounds=5)
    fail(host, 8)
    (reason,) = why(farm, last_queued(farm)).reasons
    assert (reason.code, reason.passes) == ("health_bad", False)
    assert reason.since == farm.clock.now()


def test_a_host_whose_agent_is_gone_is_told_before_its_phone(
    farm: FarmRig, host: HostRig, job: JobId
) -> None:
    last_heard = farm.clock.now()
    for seconds in (61, 301):
        farm.clock.advance(seconds)
        farm.reap()
    view = why(farm, job)
    assert codes(view) == ["session_not_live", "not_online"]
    assert view.reasons[0].since == last_heard
    assert "bench-1" in view.reasons[0].hint


def test_a_phone_that_is_not_online_is_told_with_how_to_get_it_back(
    farm: FarmRig, host: HostRig, job: JobId
) -> None:
    host.phones["phone-1"] = phone("phone-1", presence=Presence.UNAUTHORIZED)
    host.exchange()
    (reason,) = why(farm, job).reasons
    assert (reason.code, reason.message) == ("not_online", "the device is not online (unauthorized)")
    assert "USB debugging" in reason.hint


def test_a_phone_that_no_one_admitted_waits_for_an_operator(farm: FarmRig, host: HostRig) -> None:
    other = farm.host("bench-2", auto_admit=False)
    other.plug_in("phone-9")
    other.run()
    matrix_id = farm.submit(rounds=1, devices={"device": "phone-9"})
    assert codes(why(farm, first_job(farm, matrix_id, "phone-9")))[0] == "pending"


def test_a_device_action_goes_first(farm: FarmRig, job: JobId) -> None:
    farm.write(
        bind_tx(request_device_action, now=farm.clock.now()),
        "phone-1",
        DeviceActionKind.CLEAN,
        OperatorRequest(by="ann"),
    )
    (reason,) = why(farm, job).reasons
    assert (reason.code, reason.by, reason.passes) == ("device_action", "user:ann", True)


def test_a_phone_that_is_not_cleaned_up_says_since_when(farm: FarmRig, host: HostRig, job: JobId) -> None:
    first = {each.device_id: each for each in host.exchange().assignments}["phone-1"]
    host.report(first.attempt_id, good_evidence(first))
    ended_at = farm.clock.now()
    farm.clock.advance(30)
    (reason,) = why(farm, last_queued(farm)).reasons
    assert (reason.code, reason.since) == ("not_cleaned", ended_at)


def test_a_phone_whose_cpu_another_uses_waits_its_turn(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.host()
    for name in ("phone-1", "phone-2"):
        host.plug_in(name, cpu_domain="cpu-0")
    host.earn_health()
    matrix_id = farm.submit(rounds=1)
    (running,) = host.exchange().assignments
    waiting = "phone-2" if running.device_id == "phone-1" else "phone-1"
    assert codes(why(farm, first_job(farm, matrix_id, waiting))) == ["cpu_shared"]


def test_a_host_that_is_drained_is_told_with_who_drained_it(farm: FarmRig, host: HostRig, job: JobId) -> None:
    asked = OperatorRequest(by="ann", reason="new disk")
    farm.write(bind_tx(change_host, now=farm.clock.now()), "bench-1", HostEvent.DRAINED, asked)
    (reason,) = why(farm, job).reasons
    assert (reason.code, reason.by, reason.cause) == ("host_draining", "user:ann", "new disk")
    assert reason.hint == "farm host activate bench-1"


def test_a_host_that_has_all_the_runs_it_may_have_is_told_as_that(farm: FarmRig, host: HostRig) -> None:
    farm.write(bind_tx(limit_host, now=farm.clock.now()), "bench-1", LimitRequest(by="ann", max_runs=1))
    matrix_id = farm.submit(rounds=1)
    (running,) = host.exchange().assignments
    waiting = "phone-2" if running.device_id == "phone-1" else "phone-1"
    (reason,) = why(farm, first_job(farm, matrix_id, waiting)).reasons
    assert (reason.code, reason.passes) == ("host_full", True)


def test_a_host_whose_disk_is_full_is_told_in_its_agents_words(
    farm: FarmRig, host: HostRig, job: JobId
) -> None:
    said = Exchange(seq=host.seq + 1, devices=tuple(host.phones.values()), pressure="its disk is full")
    host.call(said)
    (reason,) = why(farm, job).reasons
    assert (reason.code, reason.cause) == ("host_pressure", "its disk is full")
    assert reason.since == farm.clock.now()


def test_a_phone_that_is_too_warm_is_told_in_its_agents_words(
    farm: FarmRig, host: HostRig, job: JobId
) -> None:
    assignments = host.exchange().assignments
    warm = [
        AttemptReport(
            attempt_id=each.attempt_id,
            fence=each.fence,
            phase=AttemptState.PREPARING,
            waiting_for="skin 41.0 C, at most 38.0 C",
        )
        for each in assignments
    ]
    began_at = farm.clock.now()
    host.exchange(warm)
    farm.clock.advance(20)
    host.exchange(warm)
    (reason,) = why(farm, job).reasons
    assert (reason.code, reason.since) == ("gates_shut", began_at)
    assert "skin 41.0 C" in reason.message
    host.exchange([phase(each, AttemptState.PREPARING) for each in assignments])
    assert codes(why(farm, job)) == ["preparing"]
    host.exchange([phase(each, AttemptState.MEASURING) for each in assignments])
    assert codes(why(farm, job)) == ["measuring"]


def test_a_run_whose_agent_is_silent_is_told_as_that(farm: FarmRig, host: HostRig, job: JobId) -> None:
    assignments = host.exchange().assignments
    host.exchange([phase(each, AttemptState.MEASURING) for each in assignments])
    heard_at = farm.clock.now()
    farm.clock.advance(61)
    farm.reap()
    view = why(farm, job)
    assert codes(view) == ["session_silent", "measuring"]
    assert view.reasons[0].since == heard_at


def test_a_finished_job_says_how_it_ended(farm: FarmRig, host: HostRig, job: JobId) -> None:
    host.run()
    view = why(farm, job)
    assert (view.state, view.outcome, view.reasons) == ("finished", "succeeded", ())
    assert view.since is not None


def test_when_all_phones_of_a_matrix_are_retired_its_jobs_are_over_and_say_why(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = farm.submit(rounds=2)
    job = first_job(farm, matrix_id)
    for device in ("phone-1", "phone-2"):
        farm.write(bind_tx(retire, now=farm.clock.now()), device, OperatorRequest(by="ann"))
    view = why(farm, job)
    assert (view.state, view.outcome, view.by) == ("finished", "cancelled", "user:ann")
    assert view.cause == "phone-1 was retired"
    assert of_matrix(farm, matrix_id).devices == ()
    with pytest.raises(SelectorEmpty):
        farm.submit(rounds=1)


def test_a_job_that_comes_back_to_a_retired_phone_says_so_until_it_is_cancelled(
    farm: FarmRig, host: HostRig, job: JobId
) -> None:
    first = {each.device_id: each for each in host.exchange().assignments}["phone-1"]
    farm.write(bind_tx(retire, now=farm.clock.now()), "phone-1", OperatorRequest(by="ann"))
    host.report(first.attempt_id, device_trouble(first))
    host.clean(first)
    host.exchange()
    assert codes(why(farm, job))[0] == "retired"
    farm.write(bind_tx(cancel_jobs_of_retired, now=farm.clock.now()))
    assert why(farm, job).outcome == "cancelled"


def test_a_matrix_is_told_phone_by_phone_those_first_that_need_someone(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(rounds=2)
    farm.write(
        bind_tx(change_admin, now=farm.clock.now()), "phone-2", AdminEvent.CORDONED, OperatorRequest(by="ann")
    )
    (running,) = host.exchange().assignments
    view = of_matrix(farm, matrix_id)
    assert view.left == 8
    assert [(each.device_id, each.queued, each.active) for each in view.devices] == [
        ("phone-2", 4, None),
        ("phone-1", 3, running.job_id),
    ]
    assert [codes(each) for each in view.devices] == [["cordoned"], ["claimed"]]
    assert view.moved_at == farm.clock.now()


def test_a_matrix_behind_another_is_told_how_many_jobs_go_first(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=2)
    view = of_matrix(farm, farm.submit(rounds=1))
    assert [(each.jobs_before, each.queued) for each in view.devices] == [(4, 2), (4, 2)]
    assert view.moved_at is None


def test_a_job_or_a_matrix_that_is_not_there_is_not_found(farm: FarmRig) -> None:
    with pytest.raises(NotFound):
        why(farm, JobId(99))
    with pytest.raises(NotFound):
        of_matrix(farm, MatrixId(99))


def test_devices_that_wait_are_told_together_and_as_for_their_matrix(farm: FarmRig, host: HostRig) -> None:
    names = [DeviceId(f"phone-{number}") for number in range(1, 7)]
    for name in names:
        host.plug_in(name)
    host.earn_health()
    matrix_id = farm.submit(rounds=1)
    counts = []
    for some in (names[:1], names):
        with sent_to(farm.database.engine) as sent:
            views = farm.read(devices_waiting, matrix_id, some)
        assert [view.device_id for view in views] == some
        counts.append(len(sent))
    assert counts[0] == counts[1]
    by_device = {view.device_id: view for view in of_matrix(farm, matrix_id).devices}
    assert {view.device_id: view for view in views} == by_device
    assert farm.read(devices_waiting, matrix_id, [DeviceId("phone-9")]) == []
