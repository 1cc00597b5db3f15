"""What an exchange changes: pure functions of what the farm knows and of what the agent says."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from farm.core.base.ids import DeviceId
from farm.core.checks.incident import became_unreachable, find_usb_full_cause
from farm.core.devices.device import Presence
from farm.core.devices.host_state import IncidentKind
from farm.core.jobs.attempt import Attempt, AttemptEvent, AttemptState, advance
from farm.core.jobs.deferral import JOB_DEFERRED
from farm.core.jobs.retry import MOVED
from farm.services.agents.exchange.device_changes import (
    HIGHER_FENCE,
    follow_up,
    record_facts,
    refuse_second_claim,
    seen_as,
    stays,
)
from farm.services.agents.exchange.effects import (
    AddDevice,
    AdvanceAttempt,
    CancelAttempt,
    Effect,
    EndErrand,
    EndIncident,
    LookForIncident,
    LoseAttempt,
    MarkAbsent,
    OpenHostIncident,
    RaiseFence,
    RecordSeen,
    RecordWaiting,
    ReturnAttempt,
)
from farm.services.agents.exchange.snapshot import FleetSnapshot
from farm.store.devices.devices import Device
from farm.store.devices.reports import DeviceStatusUpdate
from farm.store.upkeep.device_actions import DeviceActionId
from farm.wire.agents.protocol import AttemptReport, DeviceReport, Exchange

_EVENT_BY_PHASE = {
    AttemptState.PREPARING: AttemptEvent.PREPARED,
    AttemptState.MEASURING: AttemptEvent.STARTED,
    AttemptState.REPORTING: AttemptEvent.ENDED,
}


def reconcile_attempts(snapshot: FleetSnapshot, said: Exchange) -> tuple[Effect, ...]:
    """Return what happened to the attempts, and to devices that the host did not have before.

    It comes first: what it changes of devices, `reconcile` has to find changed.
    """
    return (
        *raised_fences(snapshot.devices, said.attempts),
        *_attempts(snapshot, said.attempts),
        *_arrivals(snapshot, said.devices),
    )


def reconcile(snapshot: FleetSnapshot, said: Exchange, *, now: datetime) -> tuple[Effect, ...]:
    """Return what else an exchange changes, in the order in which it is to be applied.

    `said.devices` is complete: devices of the host that it leaves out are absent.
    """
    report_by_id = {DeviceId(report.device_id): report for report in said.devices}
    held = {report.attempt_id for report in said.attempts}
    gone = [
        device
        for device in snapshot.devices
        if device.device_id not in report_by_id and device.presence is not Presence.ABSENT
    ]
    known = {device.device_id: device for device in snapshot.devices} | dict(snapshot.elsewhere)
    before: list[Effect] = []
    seen: list[DeviceStatusUpdate] = []
    for device_id, report in report_by_id.items():
        device = known[device_id]
        if device.host_id != snapshot.host_id and stays(device, report):
            before += refuse_second_claim(device, report, snapshot.host_id)
        else:
            before += record_facts(device, report)
            seen.append(seen_as(device, report, held=held))
    return (
        *_host_condition(snapshot, said, now=now),
        *(MarkAbsent(device_id=device.device_id, presence=device.presence) for device in gone),
        *before,
        RecordSeen(seen=seen),
        *(
            effect
            for each in seen
            for effect in follow_up(snapshot, each, report_by_id[each.device.device_id], now=now)
        ),
        *((LookForIncident(),) if _has_lost_one(snapshot, report_by_id) else ()),
        *_ended_errands(snapshot, seen, said),
    )


def facts_wanted(effects: Iterable[Effect], said: Exchange) -> tuple[DeviceId, ...]:
    """Return the devices that are online without the farm knowing what they are."""
    online = {report.device_id for report in said.devices if report.presence is Presence.ONLINE}
    return tuple(
        seen.device.device_id
        for effect in effects
        if isinstance(effect, RecordSeen)
        for seen in effect.seen
        if seen.device.device_id in online and seen.presence is not Presence.ONLINE
    )


def raised_fences(devices: Sequence[Device], reports: Collection[AttemptReport]) -> Iterator[Effect]:
    """Raise the tokens of a host's devices to the highest that its agent quotes for them.

    A token above the database's was given and then forgotten, by a fail-over or a copy put back: were it
    given again, two runs would have it.
    """
    quoted: dict[DeviceId, int] = {}
    for report in reports:
        if report.device_id is not None:
            quoted[report.device_id] = max(report.fence, quoted.get(report.device_id, 0))
    for device in devices:
        if device.fence < quoted.get(device.device_id, 0):
            fence = quoted[device.device_id]
            yield RaiseFence(device_id=device.device_id, fence=fence, cause=HIGHER_FENCE)


def _attempts(snapshot: FleetSnapshot, reports: Sequence[AttemptReport]) -> Iterator[Effect]:
    """Follow a full list of what an agent has in hand; what quotes another fence or session changes nothing.

    An attempt of a cancelled job ends as soon as its agent no longer lists it. Any other that the agent had
    begun and lists no longer is lost: it let go of it, for one because the farm refused its report for good.
    Nothing else would ever end it while the agent lives.
    """
    report_by_id = {report.attempt_id: report for report in reports}
    for attempt in snapshot.attempts:
        report = report_by_id.get(attempt.attempt_id)
        is_unwanted = attempt.attempt_id in snapshot.unwanted
        if report is not None:
            yield from progress(attempt, _as_begun(report) if is_unwanted else report)
        elif is_unwanted:
            yield _let_go(attempt)
        elif attempt.state is not AttemptState.CLAIMED:
            yield LoseAttempt(attempt=attempt, cause="its agent let go of it", code="host.let_go")


def _let_go(attempt: Attempt) -> Effect:
    """End an attempt of a cancelled job that its agent lists no longer, or never did."""
    if attempt.state is AttemptState.CLAIMED:
        return ReturnAttempt(attempt=attempt, reason="its job was cancelled before it began")
    return CancelAttempt(attempt=attempt, cause="its job was cancelled, and its agent stopped it")


def _as_begun(report: AttemptReport) -> AttemptReport:
    """The report of an attempt that will be stopped: what the agent has in hand, it has to clean up."""
    if report.phase is not AttemptState.CLAIMED:
        return report
    return report.model_copy(update={"phase": AttemptState.PREPARING})


def progress(attempt: Attempt, report: AttemptReport) -> Iterator[Effect]:
    """Move a live attempt to the phase that its agent reports, unless that quotes another fence."""
    if attempt.fence != report.fence:
        return
    state, waiting_for = attempt.state, attempt.waiting_for
    event = _EVENT_BY_PHASE.get(report.phase)
    if report.phase is AttemptState.RETURNED:
        reason = report.reason or "the agent put it off"
        yield ReturnAttempt(attempt=attempt, reason=reason, code=JOB_DEFERRED)
    elif event is not None and (moved_to := advance(state, event)) is not None:
        yield AdvanceAttempt(attempt=attempt, event=event)
        state, waiting_for = moved_to, None
    if state is report.phase and waiting_for != report.waiting_for:
        yield RecordWaiting(attempt=attempt, state=state, waiting_for=report.waiting_for)


def _arrivals(snapshot: FleetSnapshot, reports: Collection[DeviceReport]) -> Iterator[Effect]:
    """Add devices that the farm never saw, and free those that turn up here of what they had elsewhere."""
    own = {device.device_id for device in snapshot.devices}
    for device_id, report in {DeviceId(report.device_id): report for report in reports}.items():
        device = snapshot.elsewhere.get(device_id)
        if device is not None and not stays(device, report):
            yield from _moved(snapshot, device)
        elif device is None and device_id not in own:
            yield AddDevice(device_id=device_id, serial=report.serial, admin=snapshot.admits_as)


def _moved(snapshot: FleetSnapshot, device: Device) -> Iterator[Effect]:
    """End what the old host had on a device, and raise its token (FAULTS 22).

    The new agent is asked to clean up to that token, and once it has begun no run of a lower one can start
    there any more; what the old agent says of such a run changes nothing, its finished report apart.
    """
    attempt = snapshot.attempt_elsewhere.get(device.device_id)
    if attempt is not None:
        cause = f"{device.device_id} turned up at host {snapshot.host_id}"
        yield LoseAttempt(attempt=attempt, cause=cause, code=MOVED)
    if attempt is not None or device.cleaned_fence < device.fence:
        cause = f"it moved from {device.host_id} to {snapshot.host_id}"
        yield RaiseFence(device_id=device.device_id, fence=device.fence + 1, cause=cause)


def _has_lost_one(snapshot: FleetSnapshot, report_by_id: Mapping[DeviceId, DeviceReport]) -> bool:
    """Return whether a device that could be used is gone, in a way that its host may have caused."""
    reported = ((device, report_by_id.get(device.device_id)) for device in snapshot.devices)
    return any(
        became_unreachable(device.presence, Presence.ABSENT if report is None else report.presence)
        for device, report in reported
    )


def _host_condition(snapshot: FleetSnapshot, said: Exchange, *, now: datetime) -> Iterator[Effect]:
    """Open or end what an agent says of its host as a whole; no device that is there loses work by it."""
    full = find_usb_full_cause({each.controller: each.said for each in said.full_controllers})
    for kind, cause, over in (
        (IncidentKind.PRESSURE, said.pressure, "its agent takes work again"),
        (IncidentKind.USB_FULL, full, "the kernel says no more of it"),
    ):
        incident = next((each for each in snapshot.incidents if each.kind is kind), None)
        if incident is not None and incident.cause != cause:
            yield EndIncident(incident=incident, cause=cause or over)
        if cause is not None and (incident is None or incident.cause != cause):
            yield OpenHostIncident(kind=kind, cause=cause)


def _ended_errands(
    snapshot: FleetSnapshot, seen: Collection[DeviceStatusUpdate], said: Exchange
) -> Iterator[Effect]:
    """End errands that the agent reports; one that is over, or not of its devices, stays as it is."""
    here = _devices_here(snapshot, seen)
    device_action_by_id = {
        device_action.device_action_id: device_action
        for device_action in snapshot.device_actions
        if device_action.device_id in here
    }
    for report in said.device_actions:
        device_action = device_action_by_id.get(DeviceActionId(report.device_action_id))
        if device_action is not None:
            yield EndErrand(device_action=device_action, report=report)


def _devices_here(snapshot: FleetSnapshot, seen: Collection[DeviceStatusUpdate]) -> set[DeviceId]:
    """Return the devices that are the host's after this exchange."""
    return {device.device_id for device in snapshot.devices} | {each.device.device_id for each in seen}
