"""Notices what hits a host as a whole, and keeps it from being held against the phones (I15)."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.checks.incident import REPORTED_BY_AGENTS, Incident, IncidentProgress, is_over
from farm.core.devices.device import Admin, Presence
from farm.core.devices.host_state import HostState, IncidentKind, SessionState
from farm.store.checks import failures as device_failures
from farm.store.checks import incidents
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.hosts import transitions as host_transitions


def end_incidents(connection: Connection, *, now: datetime) -> None:
    """End what is over."""
    for incident in incidents.open_incidents(connection):
        if (cause := _end_cause(connection, incident, now)) is not None:
            incidents.end_incident(connection, incident, now=now, cause=cause)


def find_incident(connection: Connection, device: Device) -> str | None:
    """What a phone's host is going through and the phone with it, in words."""
    found = incidents.open_incidents(connection, device.host_id)
    return next((incident.cause for incident in found if _hits(incident, device.device_id)), None)


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
    lasting = IncidentProgress(
        began_at=incident.began_at,
        last_failure_at=max([incident.began_at, *(drop.at for drop in drops)]),
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
