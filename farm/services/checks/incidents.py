"""Notices what hits a host as a whole, and keeps it from being held against the phones (I15)."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.checks.incident import (
    REPORTED_BY_AGENTS,
    WINDOW,
    DeviceFailure,
    OpenIncident,
    correlated_failures,
    find_usb_full_cause,
    is_over,
    may_be_host_caused,
)
from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import HostState, IncidentKind, SessionState
from farm.store.checks import failures as device_failures
from farm.store.checks import incidents
from farm.store.checks.incidents import Incident
from farm.store.checks.outcomes import PastOutcome
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.store.devices.devices import Device
from farm.store.hosts import transitions as host_transitions
from farm.store.jobs.attempts import Attempt
from farm.wire.agents.protocol import FullController

#: What an attempt ends with that was blamed on its phone before its host was seen to be behind it.
HOST_INCIDENT = "host.incident"


def detect_incident(
    connection: Connection, host_id: HostId, *, now: datetime, failing: DeviceId | None = None
) -> None:
    """After a phone went away or failed: see whether it is its host's trouble, and note it as that.

    `failing` is a phone whose attempt is about to end badly.
    """
    own = devices.list_devices(connection, host_id=host_id)
    found = _failures(connection, own, now)
    if failing is not None:
        found.append(DeviceFailure(device_id=failing, at=now))
    lasting = _find_open(connection, host_id, IncidentKind.CORRELATED_FAILURES)
    if lasting is not None:
        further = {trouble.device_id for trouble in found if trouble.at >= lasting.began_at}
        if new := further - set(lasting.devices):
            incidents.widen_incident(connection, lasting, new)
            # Those that were forgiven before may have failed a check of their own since.
            _restore_health(connection, lasting, new, now=now)
        return
    online = [device.device_id for device in own if device.presence is Presence.ONLINE]
    if hit := correlated_failures(found, online, now=now):
        began_at = min(trouble.at for trouble in found if trouble.device_id in hit)
        opened = incidents.add_incident(
            connection,
            host_id,
            IncidentKind.CORRELATED_FAILURES,
            began_at=began_at,
            devices=hit,
            cause=f"{len(hit)} of its phones went away or failed within {WINDOW.total_seconds():.0f} s",
            now=now,
        )
        _restore_health(connection, opened, hit, now=now)


def record_pressure(connection: Connection, host_id: HostId, pressure: str | None, *, now: datetime) -> None:
    """Open or end what an agent says of its host as a whole: that it takes no new work, and why."""
    over = "its agent takes work again"
    _record_reported(connection, host_id, IncidentKind.PRESSURE, pressure, over=over, now=now)


def record_full_controllers(
    connection: Connection, host_id: HostId, full: Collection[FullController], *, now: datetime
) -> None:
    """Open or end what an agent says of its USB controllers. No phone that is there loses work by it."""
    cause = find_usb_full_cause({each.controller: each.said for each in full})
    over = "the kernel says no more of it"
    _record_reported(connection, host_id, IncidentKind.USB_FULL, cause, over=over, now=now)


def end_incidents(connection: Connection, *, now: datetime) -> None:
    """End what is over."""
    for incident in incidents.open_incidents(connection):
        if (cause := _end_cause(connection, incident, now)) is not None:
            incidents.end_incident(connection, incident, now=now, cause=cause)


def find_incident(connection: Connection, device: Device) -> str | None:
    """What a phone's host is going through and the phone with it, in words."""
    found = incidents.open_incidents(connection, device.host_id)
    return next((incident.cause for incident in found if _hits(incident, device.device_id)), None)


def is_host_fault(connection: Connection, attempt: Attempt) -> bool:
    """Whether an attempt that ends through its phone was under way there when an incident hit the phone."""
    hitting = incidents.incidents_since(connection, [attempt.host_id], attempt.claimed_at)
    return any(_hits(incident, attempt.device_id) for incident in hitting)


def exclude_host_faults(
    connection: Connection, device_id: DeviceId, endings: list[PastOutcome]
) -> list[PastOutcome]:
    """Those of a phone's last endings that no incident of its host had a part in."""
    blamed = [ending for ending in endings if may_be_host_caused(ending.blame, ending.code)]
    if not blamed:
        return endings
    since = min(ending.claimed_at for ending in blamed)
    known = incidents.incidents_since(connection, {ending.host_id for ending in blamed}, since)
    spoiling = [incident for incident in known if _hits(incident, device_id)]
    return [
        ending
        for ending in endings
        if not (ending in blamed and any(_overlaps(incident, ending) for incident in spoiling))
    ]


def _record_reported(
    connection: Connection,
    host_id: HostId,
    kind: IncidentKind,
    cause: str | None,
    *,
    over: str,
    now: datetime,
) -> None:
    """Have one incident of a kind be open while an agent says so; what it says otherwise is another one."""
    lasting = _find_open(connection, host_id, kind)
    if lasting is not None and lasting.cause != cause:
        incidents.end_incident(connection, lasting, now=now, cause=cause or over)
        lasting = None
    if cause is not None and lasting is None:
        incidents.add_incident(connection, host_id, kind, began_at=now, devices=(), cause=cause, now=now)


def _failures(connection: Connection, own: list[Device], now: datetime) -> list[DeviceFailure]:
    ids, since = [device.device_id for device in own], now - WINDOW
    return [
        *device_failures.disconnects_since(connection, ids, since),
        *device_failures.failures_since(connection, ids, since),
    ]


def _find_open(connection: Connection, host_id: HostId, kind: IncidentKind) -> Incident | None:
    found = incidents.open_incidents(connection, host_id)
    return next((incident for incident in found if incident.kind is kind), None)


def _restore_health(
    connection: Connection, incident: Incident, hit: Collection[DeviceId], *, now: datetime
) -> None:
    """Give back the health that phones lost by what is now seen to be their host's trouble."""
    for device_id in sorted(hit):
        before = device_failures.health_before(connection, device_id, incident.began_at)
        if before in (Health.GOOD, Health.UNKNOWN):
            device_transitions.move_health(
                connection,
                device_id,
                sources=[Health.SUSPECT, Health.BAD],
                to=Health(before),
                now=now,
                cause=f"it was {incident.host_id}: {incident.cause}",
            )


def _end_cause(connection: Connection, incident: Incident, now: datetime) -> str | None:
    """Why an incident is over; None while it lasts."""
    host = host_transitions.find_host(connection, incident.host_id)
    if host is None or host.state is HostState.RETIRED:
        return "the host is retired"
    if incident.kind in REPORTED_BY_AGENTS:
        # Nobody is left who would say that it is over; whether the host is gone is an alarm of its own.
        is_lost = host.session is not None and host.session.state is SessionState.LOST
        return "nothing is heard of its agent any more" if is_lost else None
    drops = device_failures.disconnects_since(connection, incident.devices, incident.began_at)
    lasting = OpenIncident(
        began_at=incident.began_at,
        last_trouble_at=max([incident.began_at, *(drop.at for drop in drops)]),
        away=_count_away(connection, incident),
    )
    if not is_over(lasting, now=now):
        return None
    return f"{lasting.away} of its phones stay away" if lasting.away else "its phones are back"


def _count_away(connection: Connection, incident: Incident) -> int:
    here = devices.list_devices(connection, host_id=incident.host_id)
    hit = [device for device in here if device.device_id in incident.devices]
    return sum(
        1 for device in hit if device.presence is not Presence.ONLINE and device.admin is not Admin.RETIRED
    )


def _hits(incident: Incident, device_id: DeviceId) -> bool:
    return incident.kind is IncidentKind.CORRELATED_FAILURES and device_id in incident.devices


def _overlaps(incident: Incident, ending: PastOutcome) -> bool:
    is_later = incident.ended_at is not None and ending.claimed_at > incident.ended_at
    return not is_later and ending.finished_at >= incident.began_at
