"""What the report of one device changes: pure functions of the device as it was and of the report."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime
from shlex import quote

from farm.core.base.ids import AttemptId, HostId
from farm.core.checks.check_schedule import is_due
from farm.core.checks.health import is_boot_loop
from farm.core.checks.incident import Incident
from farm.core.devices.condition import Condition
from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import IncidentKind
from farm.core.devices.software_version import software_changes
from farm.core.jobs.attempt import AttemptState
from farm.core.operations.alarm import AlarmKind
from farm.core.operations.event import DeviceEvent
from farm.core.upkeep.recovery import FailureMode, Recovery
from farm.services.agents.exchange.effects import (
    ClearDeviceAlarm,
    Effect,
    MoveHealth,
    Provision,
    RaiseDeviceAlarm,
    RaiseFence,
    RecordDeviceEvent,
    RecordFacts,
    RefuseDevice,
    RequestCheck,
)
from farm.services.agents.exchange.snapshot import FleetSnapshot, is_usable
from farm.store.devices.devices import Device
from farm.store.devices.reports import DeviceStatusUpdate
from farm.wire.agents.protocol import DeviceReport

#: What a token is raised by that an agent or a device knows and the database does not.
HIGHER_FENCE = "a higher one is known there than the database has"
#: What no cable and no hub explains.
_OWN_AILMENTS = (FailureMode.BOOTING, FailureMode.WRONG_MODE, FailureMode.UNCLEAN)
_TRUSTED = (Health.GOOD, Health.SUSPECT)
_NOT_BAD = (Health.UNKNOWN, Health.GOOD, Health.SUSPECT)
_RECOVERY_HINT = (
    "farm device show {name} has what was tried; see to it by hand: its cable, its screen, its battery"
)


def stays(device: Device, report: DeviceReport) -> bool:
    """Return whether a device stays with its present host though another one reports it.

    I21: it is online in one place, and the second claimant is not believed. One that only sees something of
    it takes it from nobody who still does, nor from a run that may go on unseen.
    """
    if report.presence is Presence.ABSENT:
        # One that does not have it claims nothing.
        return True
    if report.presence is Presence.ONLINE:
        return device.session_live and device.presence is Presence.ONLINE
    if device.session_live:
        return device.presence is not Presence.ABSENT
    return device.job_id is not None


def refuse_second_claim(device: Device, report: DeviceReport, host_id: HostId) -> Iterator[Effect]:
    """Tell of a host that has a device online which stays with another one."""
    if report.presence is Presence.ONLINE:
        cause = f"host {host_id} has it online, too: it stays with {device.host_id}"
        yield RefuseDevice(device_id=device.device_id, cause=cause)


def record_facts(device: Device, report: DeviceReport) -> Iterator[Effect]:
    """Record what was read on a device; one that was updated is checked before its next job."""
    if report.facts is None:
        return
    yield RecordFacts(device_id=device.device_id, facts=report.facts, is_unnumbered=device.unit is None)
    changes = software_changes(device.facts, report.facts) if device.facts is not None else ()
    if changes:
        cause = "; ".join(map(str, changes))
        yield RecordDeviceEvent(
            device_id=device.device_id,
            kind=DeviceEvent.UPDATED,
            cause=cause,
            from_state=changes[0].before,
            to_state=changes[0].after,
        )
        if device.admin is Admin.ACTIVE:
            yield RequestCheck(device_id=device.device_id, cause=f"it was updated: {cause}")


def seen_as(device: Device, report: DeviceReport, *, held: Collection[AttemptId]) -> DeviceStatusUpdate:
    """Return what a report says of a device; `held` are the attempts that its agent has in hand."""
    is_unknown = report.presence is Presence.ONLINE and not is_usable(device, report)
    return DeviceStatusUpdate(
        device=device,
        serial=report.serial,
        presence=Presence.BOOTING if is_unknown else report.presence,
        detail=report.detail,
        condition=report.condition,
        recovery=report.recovery,
        cleaned_fence=_cleaned_fence(device, report, held),
    )


def _cleaned_fence(device: Device, report: DeviceReport, held: Collection[AttemptId]) -> int:
    """Return up to which token the device is clean.

    The agent may never have heard of an attempt that was given back, and then cannot quote its token. Nothing
    of it ran, and once the agent does not hold it, nothing will; unless its token is known there all the
    same: then an agent began it whose word was lost, with its folder or on the way.
    """
    nothing_ran = (
        device.last_attempt_state is AttemptState.RETURNED
        and device.last_attempt_id not in held
        and device.cleaned_fence == device.fence - 1
        and report.known_fence < device.fence
    )
    return max(device.fence if nothing_ran else 0, report.cleaned_fence)


def follow_up(
    snapshot: FleetSnapshot, seen: DeviceStatusUpdate, report: DeviceReport, *, now: datetime
) -> Iterator[Effect]:
    """Say what follows from a report once it is recorded."""
    device = seen.device
    yield from _charging(device, report.condition)
    recovery = tuple(_recovery(device, report.recovery))
    yield from recovery
    yield from _recovered(device, report)
    if report.claimants:
        claimants = ", ".join(report.claimants)
        cause = f"host {snapshot.host_id} has several devices that claim this identity: {claimants}"
        yield RefuseDevice(device_id=device.device_id, cause=cause)
    # Never give a token twice: the phone may come from another farm, or the database was put back.
    known_fence = max(report.known_fence, report.cleaned_fence)
    if known_fence > device.fence:
        yield RaiseFence(device_id=device.device_id, fence=known_fence, cause=HIGHER_FENCE)
    if device.host_id != snapshot.host_id:
        is_bad = any(isinstance(effect, MoveHealth) for effect in recovery)
        device = replace(device, health=Health.BAD) if is_bad else device
        yield from _doubted(device, snapshot.host_id)
        device = replace(device, health=Health.UNKNOWN) if device.health in _TRUSTED else device
    elif seen.presence is Presence.BOOTING:
        yield from _boot_loop(snapshot, device, now=now)
    if seen.presence is Presence.ONLINE:
        yield from _online(snapshot, device, report, now=now)


def _charging(device: Device, condition: Condition | None) -> Iterator[Effect]:
    before = device.condition.charging_note if device.condition else None
    if condition is not None and condition.charging_note != before:
        yield RecordDeviceEvent(
            device_id=device.device_id,
            kind=DeviceEvent.CHARGING_CHANGED,
            cause=condition.charging_note or "it charges as it likes",
        )


def _recovery(device: Device, recovery: Recovery | None) -> Iterator[Effect]:
    """Tell of what an agent has tried since to have a device back."""
    before = device.recovery
    if recovery == before:
        return
    if recovery is None:
        cause = "its agent has nothing to recover for now"
        yield RecordDeviceEvent(device_id=device.device_id, kind=DeviceEvent.RECOVERY_ENDED, cause=cause)
        return
    known = before.tries if before else ()
    for step in recovery.tries:
        if step not in known:
            yield RecordDeviceEvent(
                device_id=device.device_id,
                kind=DeviceEvent.RECOVERY_TRIED,
                cause=f"{recovery.failure_mode}: {step.said}",
                to_state=step.step,
            )
    if recovery.failed and not (before and before.failed):
        yield from _failed_recovery(device, recovery)


def _failed_recovery(device: Device, recovery: Recovery) -> Iterator[Effect]:
    tried = ", ".join(each.step.replace("_", " ") for each in recovery.tries[:-1]) or "nothing"
    failure_mode = recovery.failure_mode.replace("_", " ")
    message = (
        f"{device.name} on {device.host_id} is {failure_mode}, and nothing brought it back; tried: {tried}"
    )
    yield RaiseDeviceAlarm(
        kind=AlarmKind.RECOVERY_FAILED,
        device_id=device.device_id,
        message=message,
        hint=_RECOVERY_HINT.format(name=quote(device.name)),
    )
    if recovery.failure_mode in _OWN_AILMENTS:
        yield MoveHealth(device_id=device.device_id, sources=_NOT_BAD, to=Health.BAD, cause=message)


def _recovered(device: Device, report: DeviceReport) -> Iterator[Effect]:
    """Clear the alarm of a device that is back, and only then: an agent that starts, or begins a climb anew,
    has nothing to tell of a device either.
    """
    is_well = report.presence is Presence.ONLINE and report.detail is None and report.recovery is None
    was_well = device.presence is Presence.ONLINE and device.detail is None and device.recovery is None
    if is_well and not was_well:
        yield ClearDeviceAlarm(kind=AlarmKind.RECOVERY_FAILED, device_id=device.device_id, cause="it is back")


def _doubted(device: Device, host_id: HostId) -> Iterator[Effect]:
    """Doubt a device that moved: it was in somebody's hands, and has another cable."""
    cause = f"it moved from {device.host_id} to {host_id}"
    yield MoveHealth(device_id=device.device_id, sources=_TRUSTED, to=Health.UNKNOWN, cause=cause)


def _online(
    snapshot: FleetSnapshot, device: Device, report: DeviceReport, *, now: datetime
) -> Iterator[Effect]:
    """See to a device that is online: its clean-up, its settings, and the check that it needs."""
    if report.detail is not None:
        # Something of a run withstands its agent: bad until it comes back or is checked.
        yield MoveHealth(device_id=device.device_id, sources=_NOT_BAD, to=Health.BAD, cause=report.detail)
    if device.device_id in snapshot.unprovisioned:
        yield Provision(device_id=device.device_id)
    arrived = device.host_id != snapshot.host_id or device.presence is not Presence.ONLINE
    if _needs_check(snapshot, device, arrived=arrived, now=now):
        yield RequestCheck(device_id=device.device_id, cause=f"its health is {device.health}")


def _needs_check(snapshot: FleetSnapshot, device: Device, *, arrived: bool, now: datetime) -> bool:
    """Return whether a check of an online device is due whose health only a check can tell."""
    if device.admin is not Admin.ACTIVE or device.health is Health.GOOD:
        return False
    return is_due(device.health, snapshot.past_checks[device.device_id], arrived=arrived, now=now)


def _boot_loop(snapshot: FleetSnapshot, device: Device, *, now: datetime) -> Iterator[Effect]:
    """A device that starts again and again, and never comes up, is bad; once it does, it is checked."""
    if device.presence is Presence.BOOTING:
        return
    began_at = [*snapshot.boots[device.device_id], now]
    is_hit = any(_hits(incident, device) for incident in snapshot.incidents)
    if not is_boot_loop(began_at, now=now) or is_hit:
        return
    lasts_min = (now - began_at[0]).total_seconds() / 60
    yield MoveHealth(
        device_id=device.device_id,
        sources=_NOT_BAD,
        to=Health.BAD,
        cause=f"it began to start {len(began_at)} times within {lasts_min:.0f} min and never came up",
    )


def _hits(incident: Incident, device: Device) -> bool:
    return incident.kind is IncidentKind.CORRELATED_FAILURES and device.device_id in incident.devices
