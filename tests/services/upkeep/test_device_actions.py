"""Errands: asked once, handed out where they disturb nothing, ended once."""

from collections.abc import Sequence
from typing import Any

import pytest

from farm.core.devices.device import Presence
from farm.core.errors import Conflict, NotFound
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import SettingRestore, SettingResult, SettingState
from farm.database.transaction import bind_tx
from farm.services.agents.exchange.answer import CallAnswer
from farm.services.checks.device_detail import device_detail
from farm.services.devices.reservations import reserve
from farm.services.upkeep.device_actions import (
    EXPIRES_AFTER,
    expire_device_actions,
    get_device_action,
    request_device_action,
)
from farm.wire.agents.protocol import AttemptReport, DeviceActionReport, Exchange
from farm.wire.documents.devices import DeviceActionView, OperatorRequest, ReservationRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phone


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    """A host with a healthy phone that has two jobs queued."""
    host = farm.host()
    host.plug_in("phone-1")
    host.earn_health()
    farm.variant()
    farm.variant("int8-core")
    farm.submit(rounds=1)
    return host


def asked(
    farm: FarmRig, kind: DeviceActionKind = DeviceActionKind.IDENTIFY, by: str = "anna"
) -> DeviceActionView:
    return farm.write(
        bind_tx(request_device_action, now=farm.clock.now()), "phone-1", kind, OperatorRequest(by=by)
    )


def said(
    host: HostRig,
    *,
    device_actions: Sequence[DeviceActionReport] = (),
    in_hand: Sequence[int] = (),
    attempts: Sequence[AttemptReport] = (),
) -> CallAnswer:
    """An exchange in which the agent speaks of errands."""
    host.seq += 1
    message = Exchange(
        seq=host.seq,
        devices=tuple(host.phones.values()),
        device_actions=tuple(device_actions),
        device_actions_in_progress=tuple(in_hand),
        attempts=tuple(attempts),
    )
    return host.call(message)


def state(farm: FarmRig, device_action: DeviceActionView) -> DeviceActionView:
    return farm.read(get_device_action, device_action.device_action_id)


def test_a_device_action_is_news_goes_before_jobs_and_is_over_when_reported(
    farm: FarmRig, host: HostRig
) -> None:
    device_action = asked(farm)
    told = said(host)
    (listed,) = told.answer.device_actions
    assert (listed.device_action_id, listed.kind, listed.label) == (
        device_action.device_action_id,
        "identify",
        "phone-1",
    )
    assert told.answer.assignments == ()
    assert told.has_news
    done = said(
        host,
        device_actions=[DeviceActionReport(device_action_id=device_action.device_action_id, done="woke it")],
    )
    assert done.answer.device_actions == ()
    assert len(done.answer.assignments) == 1
    assert (state(farm, device_action).done, state(farm, device_action).error) == ("woke it", None)


def test_a_device_action_in_hand_keeps_the_phone_and_is_no_news(farm: FarmRig, host: HostRig) -> None:
    device_action = asked(farm)
    held = said(host, in_hand=[device_action.device_action_id])
    assert (held.has_news, len(held.answer.device_actions), held.answer.assignments) == (False, 1, ())


def test_asking_again_is_asking_once_until_it_is_over(farm: FarmRig, host: HostRig) -> None:
    device_action = asked(farm)
    assert asked(farm, by="bert").device_action_id == device_action.device_action_id
    assert asked(farm, DeviceActionKind.CLEAN).device_action_id != device_action.device_action_id
    said(
        host,
        device_actions=[DeviceActionReport(device_action_id=device_action.device_action_id, done="woke it")],
    )
    assert asked(farm).device_action_id != device_action.device_action_id


@pytest.mark.invariant("I6")
@pytest.mark.fault(33)
def test_a_repeated_report_changes_nothing(farm: FarmRig, host: HostRig) -> None:
    device_action = asked(farm, DeviceActionKind.CLEAN)
    report = DeviceActionReport(
        device_action_id=device_action.device_action_id, done="freed 12 bytes", freed_bytes=12
    )
    said(host, device_actions=[report])
    said(host, device_actions=[report.model_copy(update={"error": "too late", "done": None})])
    assert (state(farm, device_action).done, state(farm, device_action).freed_bytes) == ("freed 12 bytes", 12)
    events = farm.rows("SELECT actor, kind FROM events WHERE kind LIKE 'device_action%' ORDER BY event_id")
    assert [tuple(event.values()) for event in events] == [
        ("user:anna", "device_action_requested"),
        ("agent:bench-1", "device_action_done"),
    ]


@pytest.mark.invariant("I14")
def test_a_device_action_waits_for_the_run_and_its_clean_up(farm: FarmRig, host: HostRig) -> None:
    (running,) = host.exchange().assignments
    device_action = asked(farm)
    assert device_action.waiting_for == f"job {running.job_id} runs on it"
    held = AttemptReport(attempt_id=running.attempt_id, fence=running.fence, phase="measuring")
    assert said(host, attempts=[held]).answer.device_actions == ()
    host.report(running.attempt_id, good_evidence(running))
    assert said(host).answer.device_actions == ()
    assert state(farm, device_action).waiting_for == "its last run is being cleaned up"
    host.clean(running)
    answer = said(host).answer
    assert (len(answer.device_actions), answer.assignments) == (1, ())


def test_a_device_action_falls_due_between_the_runs_of_phones_that_share_its_cpu(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-1", cpu_domain="cpu")
    host.plug_in("phone-2", cpu_domain="cpu")
    host.earn_health()
    farm.variant()
    farm.variant("int8-core")
    farm.submit(devices={"device_id": "phone-2"}, rounds=1)
    (running,) = host.exchange().assignments
    device_action = asked(farm)
    assert device_action.waiting_for == "another device on the same CPU is busy"
    host.report(running.attempt_id, good_evidence(running))
    host.clean(running)
    answer = said(host).answer
    assert (len(answer.device_actions), answer.assignments) == (1, ())
    report = DeviceActionReport(device_action_id=device_action.device_action_id, done="woke it")
    assert len(said(host, device_actions=[report]).answer.assignments) == 1


@pytest.mark.invariant("I19")
def test_another_hosts_agent_cannot_end_a_device_action(farm: FarmRig, host: HostRig) -> None:
    device_action = asked(farm)
    said(
        farm.host("bench-2"),
        device_actions=[DeviceActionReport(device_action_id=device_action.device_action_id, done="me")],
    )
    assert state(farm, device_action).finished_at is None


def test_a_device_action_for_a_phone_that_is_away_expires_with_the_reason(
    farm: FarmRig, host: HostRig
) -> None:
    host.phones["phone-1"] = phone("phone-1", presence=Presence.OFFLINE)
    host.exchange()
    device_action = asked(farm)
    assert said(host).answer.device_actions == ()
    for early in (True, False):
        farm.clock.advance(EXPIRES_AFTER.total_seconds() / 2)
        farm.write(bind_tx(expire_device_actions, now=farm.clock.now()), up_since=farm.up_since)
        assert (state(farm, device_action).finished_at is None) is early
    assert state(farm, device_action).error == "not done within 10 min: the device is offline"


@pytest.mark.invariant("I10")
@pytest.mark.fault(36)
def test_no_device_action_expires_because_the_farm_was_down(farm: FarmRig, host: HostRig) -> None:
    device_action = asked(farm)
    farm.clock.advance(3600)
    farm.write(bind_tx(expire_device_actions, now=farm.clock.now()), up_since=farm.clock.now())
    assert state(farm, device_action).finished_at is None


@pytest.mark.invariant("I14")
def test_no_one_cleans_a_phone_that_someone_else_works_on(farm: FarmRig, host: HostRig) -> None:
    farm.write(bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by="bert", for_s=60))
    with pytest.raises(Conflict, match="reserved by bert"):
        asked(farm, DeviceActionKind.CLEAN)
    assert asked(farm, DeviceActionKind.CLEAN, by="bert").finished_at is None
    assert asked(farm).finished_at is None


def test_there_is_nothing_to_say_of_a_device_action_no_one_asked_for(farm: FarmRig) -> None:
    with pytest.raises(NotFound):
        farm.read(get_device_action, 9)


def found(value: str, state: SettingState, **changes: Any) -> SettingResult:
    return SettingResult(
        name="global/low_power", why="", wanted="0", before="1", now=value, state=state, **changes
    )


def set_up(farm: FarmRig, host: HostRig) -> None:
    asked(farm, DeviceActionKind.PROVISION)
    (listed,) = said(host).answer.device_actions
    settings = (found("0", SettingState.SET, original="1", ours=True),)
    said(
        host,
        device_actions=[
            DeviceActionReport(device_action_id=listed.device_action_id, done="1 set", settings=settings)
        ],
    )


def test_what_was_set_is_kept_and_an_undo_says_what_to_write(farm: FarmRig, host: HostRig) -> None:
    host.run()
    set_up(farm, host)
    kept = farm.read(device_detail, "phone-1").settings
    assert kept is not None
    assert (kept.requested_by, kept.kind, kept.settings[0].original) == (
        "anna",
        DeviceActionKind.PROVISION,
        "1",
    )
    asked(farm, DeviceActionKind.RESTORE_SETTINGS)
    (listed,) = said(host).answer.device_actions
    assert listed.put_back == (SettingRestore(name="global/low_power", value="1"),)
    undone = (found("1", SettingState.RESTORED),)
    said(
        host,
        device_actions=[
            DeviceActionReport(device_action_id=listed.device_action_id, done="put back", settings=undone)
        ],
    )
    with pytest.raises(Conflict, match="has set nothing"):
        asked(farm, DeviceActionKind.RESTORE_SETTINGS)


def test_an_event_says_who_had_a_phone_set_up_and_what_was_done(farm: FarmRig, host: HostRig) -> None:
    set_up(farm, host)
    told = farm.rows("SELECT actor, cause FROM events WHERE kind LIKE 'device_action%' ORDER BY event_id")
    assert [event["actor"] for event in told] == ["user:anna", "agent:bench-1"]
    assert str(told[-1]["cause"]).endswith("provision: 1 set")


def test_a_phone_of_a_host_that_sets_up_its_phones_is_set_up_once(farm: FarmRig, host: HostRig) -> None:
    for device_id, report in host.phones.items():
        host.phones[device_id] = report.model_copy(update={"wants_provisioning": True})
    (listed,) = said(host).answer.device_actions
    assert listed.kind is DeviceActionKind.PROVISION
    said(
        host,
        device_actions=[
            DeviceActionReport(device_action_id=listed.device_action_id, error="it has no settings")
        ],
    )
    assert said(host).answer.device_actions == ()


def test_no_one_sets_up_a_phone_that_another_holds(farm: FarmRig, host: HostRig) -> None:
    farm.write(bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by="anna", for_s=60))
    with pytest.raises(Conflict):
        asked(farm, DeviceActionKind.PROVISION, by="bert")
    assert asked(farm, DeviceActionKind.CHECK_SETTINGS, by="bert").finished_at is None
