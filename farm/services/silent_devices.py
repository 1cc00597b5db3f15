"""Phones of the pool that somebody should see to: gone, unusable, not let in, or claimed twice."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.advice import advice
from farm.core.alarm import AlarmFinding, AlarmKind, AlarmRules, AlarmSubject
from farm.core.device import Admin, Blocker, Presence, blockers
from farm.core.event import DeviceEvent
from farm.core.host_state import HostState
from farm.core.units import elapsed_text
from farm.services.since import since
from farm.store.devices import Device
from farm.store.story import left_online_at, told_since

#: What keeps a phone from work and does not go by itself; of a host that is away, the host is told of.
_UNUSABLE = (
    Blocker.NOT_ONLINE,
    Blocker.HEALTH_BAD,
    Blocker.HEALTH_UNKNOWN,
    Blocker.HEALTH_SUSPECT,
    Blocker.NOT_CLEANED,
)
#: A clash is over once the second claimant, who is told of every minute, is quiet for so long.
_CLASH_LASTS = timedelta(minutes=10)


def device_findings(
    connection: Connection, found: Sequence[Device], rules: AlarmRules, *, now: datetime, up_since: datetime
) -> Iterator[AlarmFinding]:
    """What alarms of phones are due for now. Nobody was silent while the farm itself was down (I10)."""
    known = {device.device_id: device for device in found}
    for device in known.values():
        if (finding := _finding(connection, device, rules, now, up_since)) is not None:
            yield finding
    kind = DeviceEvent.CLAIM_REFUSED
    for device_id, cause in told_since(connection, kind, now - _CLASH_LASTS).items():
        if (clashing := known.get(device_id)) is not None:
            yield AlarmFinding(
                kind=AlarmKind.IDENTITY_CLASH,
                subject=AlarmSubject.DEVICE,
                subject_id=device_id,
                message=f"{clashing.name} is in two places: {cause}",
                hint="unplug it from one of them; two phones with one serial number cannot both be used",
            )


def _finding(
    connection: Connection, device: Device, rules: AlarmRules, now: datetime, up_since: datetime
) -> AlarmFinding | None:
    found = blockers(device.state(), check=False)
    is_ours = device.admin is Admin.ACTIVE and device.held_by is None
    if not is_ours or not device.session_live or device.host_state is not HostState.ACTIVE:
        return None
    first = next((blocker for blocker in found if blocker in _UNUSABLE), None)
    if first is None or device.job_id is not None:
        return None
    is_locked = first is Blocker.NOT_ONLINE and device.presence is Presence.UNAUTHORIZED
    began_at = _began_at(connection, device, first)
    lasted = now - max(began_at, up_since)
    if lasted < (rules.trouble_after if is_locked else rules.device_after):
        return None
    detail = device.detail if first is Blocker.NOT_ONLINE else since(connection, device, first).cause
    state = device.presence.replace("_", " ") if first is Blocker.NOT_ONLINE else first.value
    lasts = elapsed_text((now - began_at).total_seconds())
    return AlarmFinding(
        kind=AlarmKind.DEVICE_UNAUTHORIZED if is_locked else AlarmKind.DEVICE_SILENT,
        subject=AlarmSubject.DEVICE,
        subject_id=device.device_id,
        message=f"{device.name} on {device.host_id}: {state} for {lasts}" + (f": {detail}" if detail else ""),
        hint=advice(first, device.presence, name=device.name, host=device.host_id)
        or f"farm device show {device.name} tells more; farm device cordon takes it out of the pool",
    )


def _began_at(connection: Connection, device: Device, blocker: Blocker) -> datetime:
    if blocker is Blocker.NOT_ONLINE:
        # It may have been offline, booting and absent in turn.
        left_at = left_online_at(connection, device.device_id)
        if left_at is not None:
            return left_at
    return since(connection, device, blocker).at or device.seen_at
