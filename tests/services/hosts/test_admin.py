"""What operators decide about hosts, and what becomes of the runs and phones there."""

import pytest
from pydantic import SecretStr

from farm.core.base.ids import HostId
from farm.core.devices.host_state import HostEvent
from farm.core.errors import AuthError, Conflict, NotFound, SessionFenced
from farm.core.jobs.attempt import AttemptState
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import authenticate, create_join_token, enroll
from farm.services.checks.requested import assert_clean, request_check
from farm.services.hosts.admin import change_host, limit_host, retire_host, retirement_plan
from farm.services.hosts.views import host_detail, list_host_views
from farm.wire.agents.protocol import Enrollment
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.hosts import HostChange, HostView, LimitRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phase, plan_of

KIM = OperatorRequest(by="kim", reason="a new hub")


def drain(farm: FarmRig, event: HostEvent = HostEvent.DRAINED, host: str = "bench-1") -> HostChange:
    return farm.write(bind_tx(change_host, now=farm.clock.now()), host, event, KIM)


def retire(farm: FarmRig) -> HostChange:
    return farm.write(bind_tx(retire_host, now=farm.clock.now()), "bench-1", KIM)


def view(farm: FarmRig) -> HostView:
    (found,) = farm.read(list_host_views, after=HostId(""), limit=10)
    return found


def rejoin(farm: FarmRig) -> str:
    token = farm.write(bind_tx(create_join_token, now=farm.clock.now()), auto_admit=True)
    enrollment = Enrollment(host="bench-1", join_token=SecretStr(token))
    return farm.write(bind_tx(enroll, now=farm.clock.now()), enrollment).credential


@pytest.mark.invariant("I19")
def test_a_join_token_is_used_up_or_too_old_also_if_it_was_good_when_asked_before(farm: FarmRig) -> None:
    used, old = (
        SecretStr(farm.write(bind_tx(create_join_token, now=farm.clock.now()), auto_admit=True))
        for _ in range(2)
    )
    farm.write(bind_tx(enroll, now=farm.clock.now()), Enrollment(host="bench-7", join_token=used))
    with pytest.raises(AuthError, match="used up"):
        farm.write(bind_tx(enroll, now=farm.clock.now()), Enrollment(host="bench-8", join_token=used))
    farm.clock.advance(365 * 86_400)
    with pytest.raises(AuthError, match="too old"):
        farm.write(bind_tx(enroll, now=farm.clock.now()), Enrollment(host="bench-8", join_token=old))
    assert view(farm).host_id == "bench-7"


@pytest.mark.invariant("I17")
@pytest.mark.fault(30)
def test_a_drained_host_finishes_what_runs_and_begins_nothing(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=1)
    first = host.exchange().assignments
    change = drain(farm)
    assert (change.changed, change.host.state, len(change.host.runs)) == (True, "draining", 2)
    for each in first:
        assert host.report(each.attempt_id, good_evidence(each)).counted
        host.clean(each)
    assert host.exchange().assignments == ()
    assert view(farm).is_idle
    assert not drain(farm).changed
    told = farm.read(host_detail, "bench-1")
    assert told.boot_id == "boot-1"
    assert (told.why, told.events[0].actor, told.events[0].to_state) == ("a new hub", "user:kim", "draining")
    assert {device.blocked_by[0] for device in told.devices} == {"host_draining"}
    assert drain(farm, HostEvent.ACTIVATED).host.state == "active"
    assert len(host.exchange().assignments) == 2


@pytest.mark.invariant("I14")
def test_a_draining_host_checks_no_phones(farm: FarmRig, host: HostRig) -> None:
    drain(farm)
    host.plug_in("phone-3")
    assert host.exchange().assignments == ()
    drain(farm, HostEvent.ACTIVATED)
    (check,) = host.exchange().assignments
    assert plan_of(check).harness == "device_check"


@pytest.mark.fault(30)
def test_a_new_life_of_a_draining_hosts_agent_adopts_its_runs(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    (run,) = host.exchange().assignments
    host.exchange([phase(run, AttemptState.MEASURING)])
    drain(farm)
    answer = host.restart([phase(run, AttemptState.MEASURING)])
    assert [order.do for order in answer.orders] == ["continue"]
    assert host.report(run.attempt_id, good_evidence(run)).counted


@pytest.mark.invariant("I18")
def test_a_host_has_no_more_runs_than_it_may_whichever_agent_dies(farm: FarmRig, host: HostRig) -> None:
    request = LimitRequest(by="kim", max_runs=1)
    assert farm.write(bind_tx(limit_host, now=farm.clock.now()), "bench-1", request).changed
    assert not farm.write(bind_tx(limit_host, now=farm.clock.now()), "bench-1", request).changed
    farm.submit(rounds=1)
    (first,) = host.exchange().assignments
    waiting = next(each for each in farm.read(host_detail, "bench-1").devices if each.job_id is None)
    assert waiting.blocked_by == ("host_full",)
    assert len(host.exchange().assignments) == 1
    host.restart()
    host.clean(first)
    answer = host.exchange()
    assert len(answer.assignments) == 1
    host.run()
    assert {row["n"] for row in farm.rows("SELECT count(*) n FROM jobs WHERE outcome IS NULL")} == {0}


@pytest.mark.invariant("I9", "I19")
@pytest.mark.fault(52)
def test_a_retired_host_is_no_one_at_once_and_its_runs_are_lost(farm: FarmRig, host: HostRig) -> None:
    farm.clock.advance(60)
    credential = rejoin(farm)
    matrix_id = farm.submit(rounds=1)
    host.restart()
    runs = host.exchange().assignments
    host.exchange([phase(each, AttemptState.MEASURING) for each in runs])
    plan = farm.read(retirement_plan, "bench-1")
    assert (plan.devices, len(plan.host.runs), plan.matrices) == (("phone-1", "phone-2"), 2, (matrix_id,))
    assert retire(farm).changed
    with pytest.raises(AuthError):
        farm.read(authenticate, credential)
    with pytest.raises(SessionFenced):
        host.exchange()
    lost = farm.rows("SELECT DISTINCT state, blame, code FROM attempts WHERE code IS NOT NULL")
    assert lost == [{"state": "lost", "blame": "host", "code": "host.retired"}]
    assert {row["presence"] for row in farm.rows("SELECT presence FROM devices")} == {"absent"}
    assert farm.matrix(matrix_id).jobs_by_outcome == {"queued": 4}
    assert not retire(farm).changed
    with pytest.raises(Conflict):
        drain(farm)
    # Its phones go on at another host.
    second = farm.host("bench-2")
    for device_id in ("phone-1", "phone-2"):
        second.plug_in(device_id)
    for clean_up in second.exchange().clean_ups:
        phone = second.phones[clean_up.device_id]
        second.phones[clean_up.device_id] = phone.model_copy(update={"cleaned_fence": clean_up.fence})
    second.run()
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": 4}


@pytest.mark.invariant("I19")
def test_a_retired_host_comes_back_with_a_new_token_only(farm: FarmRig, host: HostRig) -> None:
    retire(farm)
    with pytest.raises(Conflict, match="cannot be activated"):
        drain(farm, HostEvent.ACTIVATED)
    credential = rejoin(farm)
    assert farm.read(authenticate, credential) == "bench-1"
    assert view(farm).state == "active"
    host.restart()
    host.exchange()


def test_a_host_that_no_one_knows_is_told_with_those_that_there_are(farm: FarmRig, host: HostRig) -> None:
    with pytest.raises(NotFound) as refused:
        drain(farm, host="bench-7")
    assert "bench-1" in refused.value.hint


def test_a_check_that_is_asked_for_comes_before_everything(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    change = farm.write(bind_tx(request_check, now=farm.clock.now()), "phone-1", KIM)
    assert change.changed
    assert not farm.write(bind_tx(request_check, now=farm.clock.now()), "phone-1", KIM).changed
    (check,) = host.exchange().assignments
    assert plan_of(check).harness == "device_check"
    (event,) = farm.rows("SELECT actor, cause FROM events WHERE actor = 'user:kim' AND kind = 'job_queued'")
    assert "a new hub" in event["cause"]


def test_a_phone_that_could_not_be_checked_is_refused_with_the_reason(farm: FarmRig, host: HostRig) -> None:
    drain(farm)
    with pytest.raises(Conflict, match="bench-1 is draining"):
        farm.write(bind_tx(request_check, now=farm.clock.now()), "phone-1", KIM)
    del host.phones["phone-2"]
    host.exchange()
    with pytest.raises(Conflict, match="phone-2 is absent"):
        farm.write(bind_tx(request_check, now=farm.clock.now()), "phone-2", KIM)


@pytest.mark.invariant("I7")
@pytest.mark.fault(27)
def test_a_persons_word_that_a_phone_is_clean_counts_when_no_agent_can_look(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    (run,) = host.exchange().assignments
    host.exchange([phase(run, AttemptState.MEASURING)])
    with pytest.raises(Conflict, match="job"):
        farm.write(bind_tx(assert_clean, now=farm.clock.now()), "phone-1", KIM)
    host.restart()
    with pytest.raises(Conflict, match="can see for itself"):
        farm.write(bind_tx(assert_clean, now=farm.clock.now()), "phone-1", KIM)
    farm.clock.advance(400)
    farm.reap()
    farm.reap()
    assert farm.write(bind_tx(assert_clean, now=farm.clock.now()), "phone-1", KIM).changed
    assert not farm.write(bind_tx(assert_clean, now=farm.clock.now()), "phone-1", KIM).changed
    (event,) = farm.rows("SELECT actor, cause FROM events WHERE kind = 'device_asserted_clean'")
    assert event["actor"] == "user:kim"
    assert event["cause"].endswith("a new hub")
    second = farm.host("bench-2")
    second.plug_in("phone-1")
    assert len(second.exchange().assignments) == 1


@pytest.mark.invariant("I18")
@pytest.mark.fault(25)
def test_a_run_that_goes_on_though_it_was_given_up_counts_among_those_a_host_may_have(
    farm: FarmRig, host: HostRig
) -> None:
    farm.write(bind_tx(limit_host, now=farm.clock.now()), "bench-1", LimitRequest(by="kim", max_runs=1))
    farm.submit(rounds=1)
    (run,) = host.exchange().assignments
    said = [phase(run, AttemptState.MEASURING)]
    host.exchange(said)
    farm.clock.advance(600)
    farm.reap()
    farm.reap()
    host.restart(said)
    assert [each.attempt_id for each in host.exchange(said).assignments] == [run.attempt_id]
    host.report(run.attempt_id, good_evidence(run))
    assert len(host.exchange().assignments) == 1
