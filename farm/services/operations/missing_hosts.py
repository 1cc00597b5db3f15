"""Hosts that somebody should see to: not heard of, or in trouble for long."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.base.units import elapsed_text
from farm.core.devices.device import Admin
from farm.core.devices.host_state import HostState
from farm.core.operations.alarm import AlarmKey, AlarmKind, AlarmRules, AlarmSubject, DueAlarm
from farm.store.checks import incidents
from farm.store.devices.devices import Device


def host_findings(
    connection: Connection,
    found: Sequence[Device],
    rules: AlarmRules,
    *,
    told: Collection[AlarmKey],
    now: datetime,
    up_since: datetime,
) -> Iterator[DueAlarm]:
    """What alarms of hosts are due for now, one for each at most. A host without phones is not missed.

    Of those that are `told` of already, all that is not over yet is due.
    """

    def is_due(host_id: HostId, began_at: datetime) -> bool:
        is_told = (AlarmKind.HOST_INCIDENT, AlarmSubject.HOST, host_id) in told
        return is_told or now - max(began_at, up_since) >= rules.trouble_after

    said: defaultdict[HostId, list[str]] = defaultdict(list)
    for host_id, own in _devices_by_host(found).items():
        seen_at = max(device.seen_at for device in own)
        is_away = not own[0].session_live and own[0].host_state is HostState.ACTIVE
        if is_away and is_due(host_id, seen_at):
            lasts = elapsed_text((now - seen_at).total_seconds())
            said[host_id].append(f"nothing is heard of its agent for {lasts}, nor of its {len(own)} phones")
    for incident in incidents.open_incidents(connection):
        if is_due(incident.host_id, incident.began_at):
            lasts = elapsed_text((now - incident.began_at).total_seconds())
            said[incident.host_id].append(f"{incident.cause}, for {lasts}")
    for host_id, troubles in said.items():
        yield DueAlarm(
            kind=AlarmKind.HOST_INCIDENT,
            subject=AlarmSubject.HOST,
            subject_id=host_id,
            message=f"{host_id}: {'; '.join(troubles)}",
            hint=f"farm agent status and farm doctor --agent on {host_id} say more;"
            f" farm host drain {host_id} if it is to be so",
        )


def _devices_by_host(found: Sequence[Device]) -> dict[HostId, list[Device]]:
    own: defaultdict[HostId, list[Device]] = defaultdict(list)
    for device in found:
        if device.admin is Admin.ACTIVE:
            own[device.host_id].append(device)
    return own
