"""Detect incidents of a host as a whole, so that its phones are not blamed for them (I15)."""

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.checks.failures import REPORTED_BY_AGENTS, Incident, IncidentProgress, is_over
from farm.core.devices.device import Admin, Presence
from farm.core.devices.host_state import HostState, IncidentKind, SessionState
from farm.database.transaction import Tx
from farm.store.checks import failures as device_failures
from farm.store.checks import incidents
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.hosts import hosts as host_store


def end_incidents(tx: Tx) -> None:
    """End what is over."""
    for incident in incidents.open_incidents(tx.connection):
        if (cause := _end_cause(tx, incident)) is not None:
            incidents.end_incident(tx, incident, cause=cause)


def find_incident(connection: Connection, device: Device) -> str | None:
    """Return the cause of the incident of a phone's host that affects the phone, in words."""
    host_incidents = incidents.open_incidents(connection, device.host_id)
    return next((incident.cause for incident in host_incidents if _affects(incident, device.device_id)), None)


def _end_cause(tx: Tx, incident: Incident) -> str | None:
    """Return the reason why an incident is over; None while it lasts."""
    host = host_store.find_host(tx.connection, incident.host_id)
    if host is None or host.state is HostState.RETIRED:
        return "the host is retired"
    if incident.kind in REPORTED_BY_AGENTS:
        # No agent is left to say that it is over; a host that is gone is an alarm of its own.
        is_lost = host.session is not None and host.session.state is SessionState.LOST
        return "its agent does not report any more" if is_lost else None
    drops = device_failures.disconnects_since(
        tx.connection, incident.devices, incident.began_at, host_id=incident.host_id
    )
    lasting = IncidentProgress(
        began_at=incident.began_at,
        last_failure_at=max([incident.began_at, *(drop.at for drop in drops)]),
        away=_count_away(tx.connection, incident),
    )
    if not is_over(lasting, now=tx.now):
        return None
    return f"{lasting.away} of its phones stay away" if lasting.away else "its phones are back"


def _count_away(connection: Connection, incident: Incident) -> int:
    here = devices.list_devices(connection, host_id=incident.host_id)
    hit = [device for device in here if device.device_id in incident.devices]
    return sum(
        1 for device in hit if device.presence is not Presence.ONLINE and device.admin is not Admin.RETIRED
    )


def _affects(incident: Incident, device_id: DeviceId) -> bool:
    return incident.kind is IncidentKind.CORRELATED_FAILURES and device_id in incident.devices
