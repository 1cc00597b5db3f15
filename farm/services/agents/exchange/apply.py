"""The one writer of exchanges: carries out, in one transaction, what was decided."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.operations.alarm import AlarmSubject
from farm.core.operations.event import EventSubject
from farm.core.results.settle.consequences import host_trouble
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import DeviceSettingsRecord, keep_originals
from farm.services.access.refused_requests import record_refused_claim
from farm.services.agents.exchange import effects as to
from farm.services.agents.exchange.effects import Effect
from farm.services.jobs.termination import finish_cancelled_attempt, lose_attempt, return_attempt
from farm.services.operations.alarms import clear_alarm, is_acknowledged, raise_alarm
from farm.store.checks import incidents
from farm.store.devices import facts as device_facts
from farm.store.devices import fencing_tokens
from farm.store.devices import reports as device_reports
from farm.store.devices import transitions as device_transitions
from farm.store.jobs import attempts, jobs
from farm.store.operations.events import record_event
from farm.store.results.settle.consequences import write_consequences
from farm.store.results.settle.report_context import host_context
from farm.store.upkeep import device_actions, device_settings


def apply(connection: Connection, host_id: HostId, effects: Iterable[Effect], *, now: datetime) -> None:
    """Carry out effects in their order. Each is a compare-and-set, or changes nothing the second time."""
    for effect in effects:
        _apply(connection, host_id, effect, now)


def _apply(connection: Connection, host_id: HostId, effect: Effect, now: datetime) -> None:
    actor = f"agent:{host_id}"
    match effect:
        case to.AdvanceAttempt(attempt=attempt, event=event):
            attempts.move_attempt(connection, attempt, event, now=now, actor=actor)
        case to.RecordWaiting(attempt=attempt, state=state, waiting_for=waiting_for):
            attempts.record_waiting(connection, replace(attempt, state=state), waiting_for)
        case to.ReturnAttempt(attempt=attempt, reason=reason, code=code):
            return_attempt(connection, attempt, now=now, actor=actor, reason=reason, code=code)
        case to.CancelAttempt(attempt=attempt, cause=cause):
            finish_cancelled_attempt(connection, attempt, now=now, actor=actor, cause=cause)
        case to.LoseAttempt(attempt=attempt, cause=cause, code=code):
            lose_attempt(connection, attempt, now=now, cause=cause, code=code)
        case to.AddDevice(device_id=device_id, serial=serial, admin=admin):
            device_reports.add_device(
                connection, device_id=device_id, host_id=host_id, serial=serial, admin=admin, now=now
            )
        case to.MarkAbsent(device_id=device_id, presence=presence):
            cause = "adb does not list it"
            device_reports.mark_absent(connection, device_id, presence=presence, now=now, cause=cause)
        case to.RecordFacts(device_id=device_id, facts=facts, is_unnumbered=is_unnumbered):
            device_facts.put_facts(connection, device_id, facts, now=now)
            if is_unnumbered:
                device_facts.assign_unit_number(connection, device_id, facts.device_model, now=now)
        case to.RecordSeen(seen=seen):
            device_reports.record_status_updates(connection, host_id, seen, now=now)
        case to.RaiseFence(device_id=device_id, fence=fence, cause=cause):
            fencing_tokens.raise_fence_to(connection, device_id, fence, now=now, actor=actor, cause=cause)
        case to.MoveHealth(device_id=device_id, sources=sources, to=health, cause=cause):
            device_transitions.move_health(
                connection, device_id, sources=sources, to=health, now=now, cause=cause
            )
        case to.RequestCheck(device_id=device_id, cause=cause):
            jobs.add_check(connection, device_id, now=now, cause=cause)
        case to.Provision(device_id=device_id):
            reason = "its host sets up phones by itself (FARM_AGENT_PROVISION_DEVICES)"
            kind = DeviceActionKind.PROVISION
            device_actions.add_device_action(
                connection, device_id, kind, by=actor, now=now, actor=actor, reason=reason
            )
        case to.EndErrand():
            _end_errand(connection, effect, actor, now)
        case to.RecordDeviceEvent():
            _record_event(connection, effect, actor, now)
        case to.RefuseDevice(device_id=device_id, cause=cause):
            record_refused_claim(connection, device_id, cause, host_id, now=now)
        case to.RaiseDeviceAlarm() | to.ClearDeviceAlarm():
            _change_alarm(connection, effect, now)
        case to.OpenHostIncident(kind=kind, cause=cause):
            incidents.add_incident(connection, host_id, kind, began_at=now, devices=(), cause=cause, now=now)
        case to.EndIncident(incident=incident, cause=cause):
            incidents.end_incident(connection, incident, now=now, cause=cause)
        case to.LookForIncident():
            consequences, _ = host_trouble(host_context(connection, host_id, now=now), now=now)
            write_consequences(connection, consequences)
        case _:
            assert_never(effect)


def _end_errand(connection: Connection, effect: to.EndErrand, actor: str, now: datetime) -> None:
    device_action, report = effect.device_action, effect.report
    device_actions.finish_device_action(
        connection,
        device_action,
        now=now,
        actor=actor,
        done=None if report.error is not None else report.done or "done",
        error=report.error,
        freed_bytes=report.freed_bytes,
    )
    if report.settings:
        # With what settings were before the farm first changed them.
        earlier = device_settings.find_settings_record(connection, device_action.device_id)
        settings = keep_originals(report.settings, earlier.settings if earlier else ())
        record = DeviceSettingsRecord(
            at=now, kind=device_action.kind, requested_by=device_action.requested_by, settings=settings
        )
        device_settings.put_settings_record(connection, device_action.device_id, record)


def _record_event(connection: Connection, effect: to.RecordDeviceEvent, actor: str, now: datetime) -> None:
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=effect.kind,
        subject=EventSubject.DEVICE,
        subject_id=effect.device_id,
        from_state=effect.from_state,
        to_state=effect.to_state,
        cause=effect.cause,
    )


def _change_alarm(
    connection: Connection, effect: to.RaiseDeviceAlarm | to.ClearDeviceAlarm, now: datetime
) -> None:
    kind, subject, device_id = effect.kind, AlarmSubject.DEVICE, effect.device_id
    if isinstance(effect, to.ClearDeviceAlarm):
        clear_alarm(connection, kind, subject, device_id, cause=effect.cause, now=now)
    elif not is_acknowledged(connection, kind, subject, device_id, now=now):
        message, hint = effect.message, effect.hint
        raise_alarm(connection, kind, subject, device_id, message=message, hint=hint, now=now)
