"""What agents do to have phones back: told in the event log, allowed where nobody is at work, and its end."""

from collections.abc import Sequence
from datetime import datetime
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import HostState
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.core.upkeep.recovery import FailureMode, Recovery
from farm.services.operations.alarms import clear_alarm, is_acknowledged, raise_alarm
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.store.devices.devices import Device
from farm.store.operations.events import record_event
from farm.wire.agents.protocol import DeviceReport

#: What no cable and no hub explains.
_UNDISTURBING = (FailureMode.BOOTING, FailureMode.WRONG_MODE, FailureMode.UNCLEAN)
_HINT = "farm device show {name} has what was tried; see to it by hand: its cable, its screen, its battery"


def may_recover(
    connection: Connection, host_id: HostId, reports: Sequence[DeviceReport]
) -> tuple[DeviceId, ...]:
    """The phones that are about to be disturbed, as far as that is nobody's harm (I14)."""
    asking = {
        each.device_id for each in reports if each.recovery is not None and each.recovery.needs_approval
    }
    if not asking:
        return ()
    here = devices.list_devices(connection, host_id=host_id)
    return tuple(each.device_id for each in here if each.device_id in asking and _is_free(each))


def record_recovery(
    connection: Connection, device: Device, recovery: Recovery | None, host_id: HostId, *, now: datetime
) -> None:
    """Tell of what is new; `device` is as it was before this came."""
    before = device.recovery
    if recovery == before:
        return
    known = before.tries if before else ()
    for each in recovery.tries if recovery else ():
        if each not in known:
            cause = f"{recovery.failure_mode if recovery else ''}: {each.said}"
            _record(connection, device, host_id, DeviceEvent.RECOVERY_TRIED, now, cause, to=each.step)
    if recovery is None:
        cause = "its agent has nothing to recover for now"
        _record(connection, device, host_id, DeviceEvent.RECOVERY_ENDED, now, cause)
    elif recovery.failed and not (before and before.failed):
        _raise_alarm(connection, device, recovery, now=now)


def clear_recovery_alarm(
    connection: Connection, device: Device, report: DeviceReport, *, now: datetime
) -> None:
    """Clear the alarm of a phone that is back, and only then: an agent that starts, or begins a climb anew,
    has nothing to tell of a phone either. `device` is as it was before the report came.
    """
    is_well = report.presence is Presence.ONLINE and report.detail is None and report.recovery is None
    was_well = device.presence is Presence.ONLINE and device.detail is None and device.recovery is None
    if is_well and not was_well:
        kind, subject = AlarmKind.RECOVERY_FAILED, AlarmSubject.DEVICE
        clear_alarm(connection, kind, subject, device.device_id, cause="it is back", now=now)


def _is_free(device: Device) -> bool:
    """Whether it is the pool's, and nobody is at work on it."""
    is_ours = device.admin is Admin.ACTIVE and device.reserved_by is None
    is_idle = device.job_id is None and not device.has_device_action
    return is_ours and is_idle and device.host_state is HostState.ACTIVE


def _raise_alarm(connection: Connection, device: Device, recovery: Recovery, *, now: datetime) -> None:
    tried = ", ".join(each.step.replace("_", " ") for each in recovery.tries[:-1]) or "nothing"
    what = recovery.failure_mode.replace("_", " ")
    message = f"{device.name} on {device.host_id} is {what}, and nothing brought it back; tried: {tried}"
    kind, subject, hint = (
        AlarmKind.RECOVERY_FAILED,
        AlarmSubject.DEVICE,
        _HINT.format(name=quote(device.name)),
    )
    if not is_acknowledged(connection, kind, subject, device.device_id, now=now):
        raise_alarm(connection, kind, subject, device.device_id, message=message, hint=hint, now=now)
    if recovery.failure_mode in _UNDISTURBING:
        device_transitions.move_health(
            connection,
            device.device_id,
            sources=[Health.UNKNOWN, Health.GOOD, Health.SUSPECT],
            to=Health.BAD,
            now=now,
            cause=message,
        )


def _record(
    connection: Connection,
    device: Device,
    host_id: HostId,
    kind: DeviceEvent,
    now: datetime,
    cause: str,
    *,
    to: str | None = None,
) -> None:
    record_event(
        connection,
        at=now,
        actor=f"agent:{host_id}",
        kind=kind,
        subject=EventSubject.DEVICE,
        subject_id=device.device_id,
        to_state=to,
        cause=cause,
    )
