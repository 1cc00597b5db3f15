"""Phones of the pool that somebody should see to: gone, unusable, not let in, or claimed twice."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.units import elapsed_text
from farm.core.devices.device import Admin, Blocker, Health, Presence, blockers
from farm.core.devices.host_state import HostState
from farm.core.devices.remediation import advice
from farm.core.operations.alarm import AlarmKey, AlarmKind, AlarmRules, AlarmSubject, DueAlarm
from farm.core.operations.event import DeviceEvent
from farm.services.devices.blocked_since import blocked_since
from farm.store.devices.devices import Device
from farm.store.operations.event_history import devices_with_events_since, last_online_at

#: What keeps a phone from work and does not go by itself.
_UNUSABLE_BLOCKERS = (
    Blocker.NOT_ONLINE,
    Blocker.HEALTH_BAD,
    Blocker.HEALTH_UNKNOWN,
    Blocker.HEALTH_SUSPECT,
    Blocker.NOT_CLEANED,
)
#: A clash is over once the second claimant, who is told of every minute, is quiet for so long.
CLAIM_CLASH_DURATION = timedelta(minutes=10)


def device_findings(
    connection: Connection,
    found: Sequence[Device],
    rules: AlarmRules,
    *,
    told: Collection[AlarmKey],
    now: datetime,
    up_since: datetime,
) -> Iterator[DueAlarm]:
    """What alarms of phones are due for now. Nobody was silent while the farm itself was down (I10).

    Of those that are `told` of already, all that is not over yet is due.
    """
    known = {device.device_id: device for device in found}
    for device in known.values():
        finding = _finding(connection, device, now)
        if finding is not None and (finding.key in told or _is_due(connection, device, rules, now, up_since)):
            yield finding
    kind = DeviceEvent.CLAIM_REFUSED
    for device_id, cause in devices_with_events_since(connection, kind, now - CLAIM_CLASH_DURATION).items():
        if (clashing := known.get(device_id)) is not None:
            yield DueAlarm(
                kind=AlarmKind.IDENTITY_CLASH,
                subject=AlarmSubject.DEVICE,
                subject_id=device_id,
                message=f"{clashing.name} is claimed twice: {cause}",
                hint="unplug one of them; two phones with one serial number are used only where their host's"
                " agent has names for where they are plugged in: FARM_AGENT_DEVICE_NAMES",
            )


def _finding(connection: Connection, device: Device, now: datetime) -> DueAlarm | None:
    """What is wrong with a phone that should be at work, however short."""
    first = _first_blocker(device)
    if first is None:
        return None
    detail = device.detail if first is Blocker.NOT_ONLINE else blocked_since(connection, device, first).cause
    state = device.presence.replace("_", " ") if first is Blocker.NOT_ONLINE else first.value
    lasts = elapsed_text((now - _began_at(connection, device, first)).total_seconds())
    return DueAlarm(
        kind=AlarmKind.DEVICE_UNAUTHORIZED if _is_locked(device) else AlarmKind.DEVICE_SILENT,
        subject=AlarmSubject.DEVICE,
        subject_id=device.device_id,
        message=f"{device.name} on {device.host_id}: {state} for {lasts}" + (f": {detail}" if detail else ""),
        hint=advice(first, device.presence, name=device.name, host=device.host_id)
        or f"farm device show {quote(device.name)} tells more; farm device cordon takes it out of the pool",
    )


def _is_due(
    connection: Connection, device: Device, rules: AlarmRules, now: datetime, up_since: datetime
) -> bool:
    """Whether somebody is to be called; of a host that is away, the host is told of."""
    first = _first_blocker(device)
    if first is None or not device.session_live:
        return False
    lasted = now - max(_began_at(connection, device, first), up_since)
    return lasted >= (rules.trouble_after if _is_locked(device) else rules.device_after)


def _first_blocker(device: Device) -> Blocker | None:
    is_ours = device.admin is Admin.ACTIVE and device.reserved_by is None
    # What runs on a phone that is not trusted is its check, which mends nothing before it is passed.
    is_at_work = device.job_id is not None and device.health is Health.GOOD
    if not is_ours or is_at_work or device.host_state is not HostState.ACTIVE:
        return None
    return next((each for each in blockers(device.state(), check=False) if each in _UNUSABLE_BLOCKERS), None)


def _is_locked(device: Device) -> bool:
    return device.presence is Presence.UNAUTHORIZED


def _began_at(connection: Connection, device: Device, blocker: Blocker) -> datetime:
    if blocker is Blocker.NOT_ONLINE:
        # It may have been offline, booting and absent in turn.
        left_at = last_online_at(connection, device.device_id)
        if left_at is not None:
            return left_at
    return blocked_since(connection, device, blocker).at or device.seen_at
