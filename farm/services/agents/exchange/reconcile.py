"""Changes by an exchange: pure functions of what the farm has stored and of what the agent reports."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from farm.core.base.ids import DeviceId
from farm.core.checks.failures import Incident, became_unreachable, find_usb_full_cause
from farm.core.devices.device import Presence
from farm.core.devices.host_state import IncidentKind
from farm.core.jobs.attempt import AttemptEvent, AttemptRecord, AttemptState, advance, is_plausible
from farm.core.jobs.retry import JOB_DEFERRED, MOVED
from farm.core.results.settle.effects import EndIncident, OpenIncident
from farm.core.upkeep.device_action import DeviceActionId
from farm.services.agents.exchange.device_changes import (
    HIGHER_FENCE,
    follow_up,
    record_facts,
    refuse_second_claim,
    status_update,
    stays,
)
from farm.services.agents.exchange.effects import (
    AddDevice,
    AdvanceAttempt,
    CancelAttempt,
    Effect,
    FindIncident,
    FinishDeviceAction,
    LoseAttempt,
    MarkAbsent,
    RaiseFence,
    RecordStatus,
    RecordWaiting,
    RefuseNewDevices,
    ReturnAttempt,
)
from farm.services.agents.exchange.snapshot import FleetSnapshot, is_usable
from farm.store.devices.devices import Device
from farm.store.devices.reports import DeviceStatusUpdate
from farm.wire.agents.protocol import MAX_DEVICES, AttemptReport, DeviceReport, Exchange

_EVENT_BY_PHASE = {
    AttemptState.PREPARING: AttemptEvent.PREPARED,
    AttemptState.MEASURING: AttemptEvent.STARTED,
    AttemptState.REPORTING: AttemptEvent.ENDED,
}


def reconcile_attempts_and_arrivals(snapshot: FleetSnapshot, request: Exchange) -> tuple[Effect, ...]:
    """Return what happened to the attempts, and to devices that the host did not have before.

    It comes first: what it changes of devices, `reconcile_devices` has to find changed.
    """
    return (
        *raised_fences(snapshot.devices, request.attempts),
        *_attempts(snapshot, request.attempts),
        *_arrivals(snapshot, request.devices),
    )


def reconcile_devices(snapshot: FleetSnapshot, request: Exchange) -> tuple[Effect, ...]:
    """Return what else an exchange changes, in the order in which it is to be applied.

    `request.devices` is complete: devices of the host that it leaves out are absent.
    """
    device_by_id = {device.device_id: device for device in snapshot.devices} | dict(snapshot.elsewhere)
    report_by_id = {
        device_id: report
        for report in request.devices
        # The host has as many as it can have, and this one was refused.
        if (device_id := DeviceId(report.device_id)) in device_by_id
    }
    held = {report.attempt_id for report in request.attempts}
    missing = [
        device
        for device in snapshot.devices
        if device.device_id not in report_by_id and device.presence is not Presence.ABSENT
    ]
    effects_before_status: list[Effect] = []
    updates: list[DeviceStatusUpdate] = []
    for device_id, report in report_by_id.items():
        device = device_by_id[device_id]
        if device.host_id != snapshot.host_id and stays(device, report):
            effects_before_status += refuse_second_claim(device, report, snapshot.host_id)
        else:
            effects_before_status += record_facts(snapshot, device, report)
            updates.append(status_update(device, report, held=held))
    return (
        *_host_incidents(snapshot, request),
        *(MarkAbsent(device_id=device.device_id, presence=device.presence) for device in missing),
        *effects_before_status,
        RecordStatus(updates=updates),
        *(
            effect
            for update in updates
            for effect in follow_up(snapshot, update, report_by_id[update.device.device_id])
        ),
        *((FindIncident(),) if _became_unreachable(snapshot, report_by_id) else ()),
        *_finished_device_actions(snapshot, updates, request),
    )


def facts_wanted(effects: Iterable[Effect], request: Exchange) -> tuple[DeviceId, ...]:
    """Return the devices reported online whose facts the farm does not have."""
    report_by_id = {DeviceId(report.device_id): report for report in request.devices}
    return tuple(
        update.device.device_id
        for effect in effects
        if isinstance(effect, RecordStatus)
        for update in effect.updates
        if (report := report_by_id[update.device.device_id]).presence is Presence.ONLINE
        and report.implausible is None
        and not is_usable(update.device, report)
    )


def raised_fences(devices: Sequence[Device], reports: Collection[AttemptReport]) -> Iterator[Effect]:
    """Raise the tokens of a host's devices to the highest that its agent quotes for them.

    A quoted token above the stored one was issued before a fail-over or restore; issuing it again would give
    two runs the same token.
    """
    quoted: dict[DeviceId, int] = {}
    for report in reports:
        if report.device_id is not None:
            quoted[report.device_id] = max(report.fence, quoted.get(report.device_id, 0))
    for device in devices:
        fence = quoted.get(device.device_id, 0)
        if device.fence < fence and is_plausible(fence, device.fence):
            yield RaiseFence(device_id=device.device_id, fence=fence, cause=HIGHER_FENCE)


def _attempts(snapshot: FleetSnapshot, reports: Sequence[AttemptReport]) -> Iterator[Effect]:
    """Compare the session's live attempts with the agent's full list.

    A report with another fencing token moves nothing. An unlisted attempt of a cancelled job ends. Any other
    unlisted attempt that had begun is lost: the agent dropped it, for example because the farm refused its
    report permanently. Nothing else would ever end it while the agent lives.
    """
    report_by_id = {report.attempt_id: report for report in reports}
    for attempt in snapshot.attempts:
        report = report_by_id.get(attempt.attempt_id)
        is_unwanted = attempt.attempt_id in snapshot.unwanted
        if report is not None:
            yield from progress(attempt, _as_begun(report) if is_unwanted else report)
        elif is_unwanted:
            yield _end_unwanted(attempt)
        elif attempt.state is not AttemptState.CLAIMED:
            yield LoseAttempt(attempt=attempt, cause="its agent let go of it", code="host.let_go")


def _end_unwanted(attempt: AttemptRecord) -> Effect:
    """End an attempt of a cancelled job that its agent lists no longer, or never did."""
    if attempt.state is AttemptState.CLAIMED:
        return ReturnAttempt(attempt=attempt, reason="its job was cancelled before it began")
    return CancelAttempt(attempt=attempt, cause="its job was cancelled, and its agent stopped it")


def _as_begun(report: AttemptReport) -> AttemptReport:
    """Return the report of an attempt that will be stopped: its agent has to clean up what it has."""
    if report.phase is not AttemptState.CLAIMED:
        return report
    return report.model_copy(update={"phase": AttemptState.PREPARING})


def progress(attempt: AttemptRecord, report: AttemptReport) -> Iterator[Effect]:
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
    room = MAX_DEVICES - len(own)
    for device_id, report in {DeviceId(report.device_id): report for report in reports}.items():
        device = snapshot.elsewhere.get(device_id)
        if device is not None and not stays(device, report):
            yield from _end_on_old_host(snapshot, device)
        elif device is None and device_id not in own:
            room -= 1
            if room >= 0:
                yield AddDevice(device_id=device_id, serial=report.serial, admin=snapshot.admits_as)
    if room < 0:
        yield RefuseNewDevices(cause=f"{-room} new devices: a host has at most {MAX_DEVICES}")


def _end_on_old_host(snapshot: FleetSnapshot, device: Device) -> Iterator[Effect]:
    """End what the old host had on a device, and raise its token (fault 22 in docs/reliability.md).

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


def _became_unreachable(snapshot: FleetSnapshot, report_by_id: Mapping[DeviceId, DeviceReport]) -> bool:
    """Return whether a device that could be used is gone, in a way that its host may have caused."""
    reported = ((device, report_by_id.get(device.device_id)) for device in snapshot.devices)
    return any(
        became_unreachable(device.presence, Presence.ABSENT if report is None else report.presence)
        for device, report in reported
    )


def _host_incidents(snapshot: FleetSnapshot, request: Exchange) -> Iterator[Effect]:
    """Open or end the incidents that the agent reports for its host; they are held against no device."""
    full = find_usb_full_cause({full.controller: full.message for full in request.full_controllers})
    for kind, cause, over in (
        (IncidentKind.PRESSURE, request.pressure, "its agent takes work again"),
        (IncidentKind.USB_FULL, full, "the kernel says no more of it"),
        (IncidentKind.FILES_DAMAGED, request.damaged_files, "the damaged files are removed"),
    ):
        incident = next((incident for incident in snapshot.incidents if incident.kind is kind), None)
        if incident is not None and incident.cause != cause:
            yield EndIncident(at=snapshot.at, incident=incident, cause=cause or over)
        if cause is not None and (incident is None or incident.cause != cause):
            opened = Incident(
                incident_id=0,
                host_id=snapshot.host_id,
                kind=kind,
                began_at=snapshot.at,
                ended_at=None,
                devices=(),
                cause=cause,
            )
            yield OpenIncident(at=snapshot.at, incident=opened)


def _finished_device_actions(
    snapshot: FleetSnapshot, updates: Collection[DeviceStatusUpdate], request: Exchange
) -> Iterator[Effect]:
    """Finish device actions that the agent reports; one that is over, or not its devices', stays as it is."""
    here = {device.device_id for device in (*snapshot.devices, *(update.device for update in updates))}
    device_action_by_id = {
        device_action.device_action_id: device_action
        for device_action in snapshot.device_actions
        if device_action.device_id in here
    }
    for report in request.device_actions:
        device_action = device_action_by_id.get(DeviceActionId(report.device_action_id))
        if device_action is not None:
            yield FinishDeviceAction(device_action=device_action, report=report)
