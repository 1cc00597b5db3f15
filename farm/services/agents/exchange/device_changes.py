"""Changes by the report of one device: pure functions of the device as it was and of the report."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from shlex import quote

from farm.core.base.ids import AttemptId, HostId
from farm.core.checks.check_schedule import is_due
from farm.core.checks.failures import Incident, is_boot_loop
from farm.core.devices.condition import Condition
from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import IncidentKind
from farm.core.devices.software_version import software_changes
from farm.core.jobs.attempt import AttemptState, is_plausible
from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.core.operations.event import DeviceEvent, EventSubject, SubjectEvent
from farm.core.results.settle.effects import (
    ChangeHealth,
    ClearAlarm,
    QueueCheck,
    RaiseAlarm,
)
from farm.core.upkeep.recovery import FailureMode, Recovery
from farm.services.agents.exchange.effects import Effect, Provision, RaiseFence, RecordFacts, RefuseDevice
from farm.services.agents.exchange.snapshot import FleetSnapshot, is_usable
from farm.store.devices.devices import Device
from farm.store.devices.reports import DeviceStatusUpdate
from farm.wire.agents.protocol import DeviceReport

_IMPLAUSIBLE_HINT = (
    "a run may have written into its work folder: `farm device show {name}` has what ran there. Its agent"
    " sets a wrong token right automatically; for other numbers, see what the device prints, and restart it"
)
#: The cause of raising a token that an agent or a device knows and the database does not.
HIGHER_FENCE = "a higher one is known there than the database has"
#: Failure modes that no cable and no hub explains.
_OWN_FAILURES = (FailureMode.BOOTING, FailureMode.WRONG_MODE, FailureMode.UNCLEAN)
_TRUSTED = (Health.GOOD, Health.SUSPECT)
_NOT_BAD = (Health.UNKNOWN, Health.GOOD, Health.SUSPECT)
_RECOVERY_HINT = (
    "farm device show {name} has what was tried; see to it by hand: its cable, its screen, its battery"
)


def stays(device: Device, report: DeviceReport) -> bool:
    """Return whether a device stays with its present host though another one reports it.

    I21: it is online in one place, and the second claimant is not believed. One that only sees something of
    it takes it from no host that still has it, nor from a run that may go on unseen.
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


def record_facts(snapshot: FleetSnapshot, device: Device, report: DeviceReport) -> Iterator[Effect]:
    """Record what was read on a device; one that was updated is checked before its next job."""
    if report.facts is None or report.implausible is not None:
        return
    yield RecordFacts(device_id=device.device_id, facts=report.facts, is_unnumbered=device.unit is None)
    changes = software_changes(device.facts, report.facts) if device.facts is not None else ()
    if changes:
        cause = "; ".join(map(str, changes))
        yield SubjectEvent(
            at=snapshot.at,
            actor=snapshot.actor,
            subject=EventSubject.DEVICE,
            subject_id=device.device_id,
            kind=DeviceEvent.UPDATED,
            cause=cause,
            from_state=changes[0].before,
            to_state=changes[0].after,
        )
        if device.admin is Admin.ACTIVE:
            yield QueueCheck(at=snapshot.at, device_id=device.device_id, cause=f"it was updated: {cause}")


def status_update(device: Device, report: DeviceReport, *, held: Collection[AttemptId]) -> DeviceStatusUpdate:
    """Return what a report says of a device; `held` are the attempts that its agent has in progress."""
    if (problem := implausible_part(device, report)) is not None:
        report = _without_claim(device, report, problem)
    is_unknown = report.presence is Presence.ONLINE and not is_usable(device, report)
    return DeviceStatusUpdate(
        device=device,
        report=report,
        presence=Presence.BOOTING if is_unknown else report.presence,
        cleaned_fence=_cleaned_fence(device, report, held),
    )


def _claimed_fence(report: DeviceReport) -> int:
    return max(report.known_fence, report.cleaned_fence)


def claims_too_much(device: Device, report: DeviceReport) -> bool:
    """Return whether a device knows a token that the farm cannot have given."""
    return not is_plausible(_claimed_fence(report), device.fence)


def implausible_part(device: Device, report: DeviceReport) -> str | None:
    """Return what a device reports and cannot mean, as text; it is not used until that is over."""
    if claims_too_much(device, report):
        return (
            f"it claims that run {_claimed_fence(report)} took place on it; the last one was {device.fence}"
        )
    return None if report.implausible is None else f"it reports what cannot be: {report.implausible}"


def _without_claim(device: Device, report: DeviceReport, problem: str) -> DeviceReport:
    """Return the report of a device that is not to be used; the clean-ups that it claims do not count."""
    is_online = report.presence is Presence.ONLINE
    changes = {
        "presence": Presence.OFFLINE if is_online else report.presence,
        "detail": problem,
        "condition": None,
        "cleaned_fence": device.cleaned_fence,
    }
    return report.model_copy(update=changes)


def _cleaned_fence(device: Device, report: DeviceReport, held: Collection[AttemptId]) -> int:
    """Return up to which token the device is clean.

    The agent may never have received an attempt that was returned, and then cannot quote its token. Nothing
    of it ran, and once the agent does not hold it, nothing will; unless its token is known there
    nevertheless: then an agent began it whose report was lost, with its folder or on the way.
    """
    nothing_ran = (
        device.last_attempt_state is AttemptState.RETURNED
        and device.last_attempt_id not in held
        and device.cleaned_fence == device.fence - 1
        and report.known_fence < device.fence
    )
    return max(device.fence if nothing_ran else 0, report.cleaned_fence)


def follow_up(snapshot: FleetSnapshot, update: DeviceStatusUpdate, report: DeviceReport) -> Iterator[Effect]:
    """Yield what follows from a report once it is recorded."""
    device = update.device
    yield from _charging(snapshot, device, report.condition)
    recovery = tuple(_recovery(snapshot, device, report.recovery))
    yield from recovery
    yield from _alarm_clearance(snapshot, device, report)
    if report.claimants:
        claimants = ", ".join(report.claimants)
        cause = f"host {snapshot.host_id} has several devices that claim this identity: {claimants}"
        yield RefuseDevice(device_id=device.device_id, cause=cause)
    # Never give a token twice: the phone may come from another farm, or the database was put back.
    if (problem := implausible_part(device, report)) is not None:
        yield RaiseAlarm(at=snapshot.at, alarm=_implausible_alarm(snapshot, device, problem))
    elif _claimed_fence(report) > device.fence:
        yield RaiseFence(device_id=device.device_id, fence=_claimed_fence(report), cause=HIGHER_FENCE)
    if device.host_id != snapshot.host_id:
        is_bad = any(isinstance(effect, ChangeHealth) for effect in recovery)
        device = replace(device, health=Health.BAD) if is_bad else device
        yield _doubt_health(snapshot, device)
        device = replace(device, health=Health.UNKNOWN) if device.health in _TRUSTED else device
    elif update.presence is Presence.BOOTING:
        yield from _boot_loop(snapshot, device)
    if update.presence is Presence.ONLINE:
        yield from _online_effects(snapshot, device, report)


def _charging(snapshot: FleetSnapshot, device: Device, condition: Condition | None) -> Iterator[Effect]:
    before = device.condition.charging_note if device.condition else None
    if condition is not None and condition.charging_note != before:
        cause = condition.charging_note or "it charges without limits"
        yield _event(snapshot, device, DeviceEvent.CHARGING_CHANGED, cause)


def _event(
    snapshot: FleetSnapshot, device: Device, kind: DeviceEvent, cause: str, *, to_state: str | None = None
) -> SubjectEvent:
    return SubjectEvent(
        at=snapshot.at,
        actor=snapshot.actor,
        subject=EventSubject.DEVICE,
        subject_id=device.device_id,
        kind=kind,
        cause=cause,
        from_state=None,
        to_state=to_state,
    )


def _recovery(snapshot: FleetSnapshot, device: Device, recovery: Recovery | None) -> Iterator[Effect]:
    """Record what an agent has tried since to have a device back."""
    before = device.recovery
    if recovery == before:
        return
    if recovery is None:
        cause = "its agent has nothing to recover for now"
        yield _event(snapshot, device, DeviceEvent.RECOVERY_ENDED, cause)
        return
    tries_before = before.tries if before else ()
    for step in recovery.tries:
        if step not in tries_before:
            cause = f"{recovery.failure_mode}: {step.result}"
            yield _event(snapshot, device, DeviceEvent.RECOVERY_TRIED, cause, to_state=step.step)
    if recovery.failed and not (before and before.failed):
        yield from _failed_recovery(snapshot, device, recovery)


def _implausible_alarm(snapshot: FleetSnapshot, device: Device, problem: str) -> DueAlarm:
    """Return the alarm of a device whose report cannot be true; it gets no work until that is over."""
    return DueAlarm(
        kind=AlarmKind.REPORT_IMPLAUSIBLE,
        subject=AlarmSubject.DEVICE,
        subject_id=device.device_id,
        message=f"{device.name} on {snapshot.host_id} is not used: {problem}",
        hint=_IMPLAUSIBLE_HINT.format(name=quote(device.name)),
    )


def _failed_recovery(snapshot: FleetSnapshot, device: Device, recovery: Recovery) -> Iterator[Effect]:
    tried = ", ".join(step.step.replace("_", " ") for step in recovery.tries[:-1]) or "nothing"
    failure_mode = recovery.failure_mode.replace("_", " ")
    message = (
        f"{device.name} on {device.host_id} is {failure_mode}, and nothing brought it back; tried: {tried}"
    )
    alarm = DueAlarm(
        kind=AlarmKind.RECOVERY_FAILED,
        subject=AlarmSubject.DEVICE,
        subject_id=device.device_id,
        message=message,
        hint=_RECOVERY_HINT.format(name=quote(device.name)),
    )
    yield RaiseAlarm(at=snapshot.at, alarm=alarm)
    if recovery.failure_mode in _OWN_FAILURES:
        yield _health_loss(snapshot, device, message)


def _health_loss(snapshot: FleetSnapshot, device: Device, cause: str) -> ChangeHealth:
    return ChangeHealth(
        at=snapshot.at, device_id=device.device_id, sources=_NOT_BAD, to=Health.BAD, cause=cause
    )


def _alarm_clearance(snapshot: FleetSnapshot, device: Device, report: DeviceReport) -> Iterator[Effect]:
    """Clear the alarm of a device that is back, and only then: an agent that starts, or begins an episode,
    has nothing to tell of a device either.
    """
    is_well = (
        report.presence is Presence.ONLINE
        and report.detail is None
        and report.recovery is None
        and implausible_part(device, report) is None
    )
    was_well = device.presence is Presence.ONLINE and device.detail is None and device.recovery is None
    if is_well and not was_well:
        alarm = AlarmKind.RECOVERY_FAILED, AlarmSubject.DEVICE, device.device_id
        yield ClearAlarm(at=snapshot.at, alarm=alarm, cause="it is back")
        alarm = AlarmKind.REPORT_IMPLAUSIBLE, AlarmSubject.DEVICE, device.device_id
        yield ClearAlarm(at=snapshot.at, alarm=alarm, cause="it reports what can be")


def _doubt_health(snapshot: FleetSnapshot, device: Device) -> ChangeHealth:
    """Doubt a device that moved: a person handled it, and it has another cable."""
    cause = f"it moved from {device.host_id} to {snapshot.host_id}"
    return ChangeHealth(
        at=snapshot.at, device_id=device.device_id, sources=_TRUSTED, to=Health.UNKNOWN, cause=cause
    )


def _online_effects(snapshot: FleetSnapshot, device: Device, report: DeviceReport) -> Iterator[Effect]:
    """Yield the clean-up, the settings and the check that an online device needs."""
    if report.detail is not None:
        # Its agent cannot remove what a run left there: bad until it comes back or is checked.
        yield _health_loss(snapshot, device, report.detail)
    if device.device_id in snapshot.unprovisioned:
        yield Provision(device_id=device.device_id)
    arrived = device.host_id != snapshot.host_id or device.presence is not Presence.ONLINE
    if _needs_check(snapshot, device, arrived=arrived):
        cause = f"its health is {device.health}"
        yield QueueCheck(at=snapshot.at, device_id=device.device_id, cause=cause)


def _needs_check(snapshot: FleetSnapshot, device: Device, *, arrived: bool) -> bool:
    """Return whether a check of an online device is due whose health only a check can tell."""
    if device.admin is not Admin.ACTIVE or device.health is Health.GOOD:
        return False
    past_checks = snapshot.past_checks[device.device_id]
    return is_due(device.health, past_checks, arrived=arrived, now=snapshot.at)


def _boot_loop(snapshot: FleetSnapshot, device: Device) -> Iterator[Effect]:
    """Make a device bad that starts again and again, and never comes up; once it does, it is checked."""
    if device.presence is Presence.BOOTING:
        return
    began_at = [*snapshot.boots[device.device_id], snapshot.at]
    is_hit = any(_affects(incident, device) for incident in snapshot.incidents)
    if not is_boot_loop(began_at, now=snapshot.at) or is_hit:
        return
    lasts_min = (snapshot.at - began_at[0]).total_seconds() / 60
    cause = f"it began to start {len(began_at)} times within {lasts_min:.0f} min and never came up"
    yield _health_loss(snapshot, device, cause)


def _affects(incident: Incident, device: Device) -> bool:
    return incident.kind is IncidentKind.CORRELATED_FAILURES and device.device_id in incident.devices
