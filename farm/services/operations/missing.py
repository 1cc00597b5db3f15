"""Find devices and hosts that are missing, claimed twice or failing for too long."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.base.units import elapsed_text
from farm.core.devices.device import Admin, Blocker, Health, Presence, blockers
from farm.core.devices.host_state import HostState
from farm.core.devices.remediation import MESSAGE_BY_BLOCKER, advice
from farm.core.operations.alarm import AlarmKey, AlarmKind, AlarmRules, AlarmSubject, DueAlarm
from farm.core.operations.event import DeviceEvent
from farm.database.transaction import Tx
from farm.services.devices.views import blocked_since
from farm.store.checks import incidents
from farm.store.devices.devices import Device
from farm.store.operations.event_log import devices_with_events_since, last_online_at

#: Blockers that keep a phone from work and do not end without a person.
_UNUSABLE_BLOCKERS = (
    Blocker.NOT_ONLINE,
    Blocker.HEALTH_BAD,
    Blocker.HEALTH_UNKNOWN,
    Blocker.HEALTH_SUSPECT,
    Blocker.NOT_CLEANED,
)
#: A clash is over once the second claimant, reported every minute, is quiet for so long.
CLAIM_CLASH_DURATION = timedelta(minutes=10)


def device_findings(
    tx: Tx, fleet: Sequence[Device], rules: AlarmRules, *, raised: Collection[AlarmKey], up_since: datetime
) -> Iterator[DueAlarm]:
    """Yield the alarms of devices that are due now. None was silent while the farm itself was down (I10).

    of those in `raised`, all that is not over yet is due.
    """
    device_by_id = {device.device_id: device for device in fleet}
    for device in device_by_id.values():
        finding = _finding(tx, device)
        if finding is not None and (finding.key in raised or _is_due(tx, device, rules, up_since)):
            yield finding
    kind = DeviceEvent.CLAIM_REFUSED
    for device_id, cause in devices_with_events_since(
        tx.connection, kind, tx.now - CLAIM_CLASH_DURATION
    ).items():
        if (clashing := device_by_id.get(device_id)) is not None:
            yield DueAlarm(
                kind=AlarmKind.IDENTITY_CLASH,
                subject=AlarmSubject.DEVICE,
                subject_id=device_id,
                message=f"{clashing.name} is claimed twice: {cause}",
                hint="unplug one of them; two phones with one serial number are used only where their host's"
                " agent has names for where they are plugged in: FARM_AGENT_DEVICE_NAMES",
            )


def _finding(tx: Tx, device: Device) -> DueAlarm | None:
    """Return the alarm of a device that should work and cannot, for however short a time; None for others."""
    first = _first_blocker(device)
    if first is None:
        return None
    detail = (
        device.detail if first is Blocker.NOT_ONLINE else blocked_since(tx.connection, device, first).cause
    )
    state = device.presence.replace("_", " ") if first is Blocker.NOT_ONLINE else MESSAGE_BY_BLOCKER[first]
    lasts = elapsed_text((tx.now - _began_at(tx.connection, device, first)).total_seconds())
    return DueAlarm(
        kind=AlarmKind.DEVICE_UNAUTHORIZED if _is_locked(device) else AlarmKind.DEVICE_SILENT,
        subject=AlarmSubject.DEVICE,
        subject_id=device.device_id,
        message=f"{device.name} on {device.host_id}: {state} for {lasts}" + (f": {detail}" if detail else ""),
        hint=advice(first, device.presence, name=device.name, host=device.host_id)
        or f"farm device show {quote(device.name)} tells more; farm device cordon takes it out of the pool",
    )


def _is_due(tx: Tx, device: Device, rules: AlarmRules, up_since: datetime) -> bool:
    """Tell whether an alarm is due; for a host that is away, it is the host's."""
    first = _first_blocker(device)
    if first is None or not device.session_live:
        return False
    lasted = tx.now - max(_began_at(tx.connection, device, first), up_since)
    return lasted >= (rules.failing_after if _is_locked(device) else rules.device_after)


def _first_blocker(device: Device) -> Blocker | None:
    is_ours = device.admin is Admin.ACTIVE and device.reserved_by is None
    # A run on a phone that is not trusted is its check, which fixes nothing before it is passed.
    is_at_work = device.job_id is not None and device.health is Health.GOOD
    if not is_ours or is_at_work or device.host_state is not HostState.ACTIVE:
        return None
    return next(
        (blocker for blocker in blockers(device.state(), check=False) if blocker in _UNUSABLE_BLOCKERS), None
    )


def _is_locked(device: Device) -> bool:
    return device.presence is Presence.UNAUTHORIZED


def _began_at(connection: Connection, device: Device, blocker: Blocker) -> datetime:
    if blocker is Blocker.NOT_ONLINE:
        # It may have been offline, booting and absent in turn.
        left_at = last_online_at(connection, device.device_id)
        if left_at is not None:
            return left_at
    return blocked_since(connection, device, blocker).since or device.seen_at


def host_findings(
    tx: Tx, fleet: Sequence[Device], rules: AlarmRules, *, raised: Collection[AlarmKey], up_since: datetime
) -> Iterator[DueAlarm]:
    """Yield the alarms of hosts that are due now, one for each at most. A host without devices is not missed.

    of those in `raised`, all that is not over yet is due.
    """

    def is_due(host_id: HostId, began_at: datetime) -> bool:
        is_told = (AlarmKind.HOST_INCIDENT, AlarmSubject.HOST, host_id) in raised
        return is_told or tx.now - max(began_at, up_since) >= rules.failing_after

    texts: defaultdict[HostId, list[str]] = defaultdict(list)
    for host_id, own in _devices_by_host(fleet).items():
        seen_at = max(device.seen_at for device in own)
        is_away = not own[0].session_live and own[0].host_state is HostState.ACTIVE
        if is_away and is_due(host_id, seen_at):
            lasts = elapsed_text((tx.now - seen_at).total_seconds())
            texts[host_id].append(f"its agent has not reported for {lasts}, nor have its {len(own)} devices")
    for incident in incidents.open_incidents(tx.connection):
        if is_due(incident.host_id, incident.began_at):
            lasts = elapsed_text((tx.now - incident.began_at).total_seconds())
            texts[incident.host_id].append(f"{incident.cause}, for {lasts}")
    for host_id, symptoms in texts.items():
        yield DueAlarm(
            kind=AlarmKind.HOST_INCIDENT,
            subject=AlarmSubject.HOST,
            subject_id=host_id,
            message=f"{host_id}: {'; '.join(symptoms)}",
            hint=f"farm agent status and farm doctor --agent on {host_id} say more;"
            f" farm host drain {host_id} if it is to be so",
        )


def _devices_by_host(fleet: Sequence[Device]) -> dict[HostId, list[Device]]:
    own: defaultdict[HostId, list[Device]] = defaultdict(list)
    for device in fleet:
        if device.admin is Admin.ACTIVE:
            own[device.host_id].append(device)
    return own
