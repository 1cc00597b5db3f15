"""Incidents of hosts: opened, widened and ended, each change with its event row."""

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.checks.failures import Incident
from farm.core.operations.event import FleetEvent
from farm.database.rows import to_record
from farm.database.tables import incidents
from farm.database.transaction import Tx
from farm.store.operations.events import record_event, record_if_moved

_OPEN_QUERY = sa.select(incidents).where(incidents.c.ended_at.is_(None))
_OPEN_OF_HOST_QUERY = _OPEN_QUERY.where(incidents.c.host_id == sa.bindparam("host_id"))


def open_incidents(connection: Connection, host_id: HostId | None = None) -> list[Incident]:
    """Return the open incidents of all hosts or of one, oldest first."""
    query = _OPEN_QUERY if host_id is None else _OPEN_OF_HOST_QUERY
    incidents_of_host = [to_record(Incident, row) for row in connection.execute(query, {"host_id": host_id})]
    return sorted(incidents_of_host, key=lambda incident: incident.incident_id)


def last_incidents(connection: Connection, host_id: HostId, *, limit: int) -> list[Incident]:
    """Return the last incidents of a host, newest first."""
    query = (
        sa.select(incidents)
        .where(incidents.c.host_id == host_id)
        .order_by(incidents.c.incident_id.desc())
        .limit(limit)
    )
    return [to_record(Incident, row) for row in connection.execute(query)]


def incidents_since(connection: Connection, host_ids: Collection[HostId], since: datetime) -> list[Incident]:
    """Return the incidents of hosts that were open at some time since `since`."""
    query = sa.select(incidents).where(
        incidents.c.host_id.in_(host_ids),
        sa.or_(incidents.c.ended_at.is_(None), incidents.c.ended_at >= since),
    )
    return [to_record(Incident, row) for row in connection.execute(query)] if host_ids else []


def add_incident(tx: Tx, incident: Incident) -> None:
    """Open an incident, whose number is given here; the caller has checked that the host has no open one of
    its kind.
    """
    row = tx.connection.execute(
        incidents.insert()
        .values(
            host_id=incident.host_id,
            kind=incident.kind,
            began_at=incident.began_at,
            devices=sorted(incident.devices),
            cause=incident.cause,
        )
        .returning(incidents.c.incident_id)
    ).one()
    cause = f"{incident.host_id}: {incident.cause}"
    record_event(tx.by("farm"), FleetEvent.INCIDENT_OPENED, row.incident_id, to_state="open", cause=cause)


def widen_incident(connection: Connection, incident: Incident, devices: Collection[DeviceId]) -> None:
    """Add devices to those that an open incident affects."""
    update = incidents.update().where(incidents.c.incident_id == incident.incident_id)
    connection.execute(update.values(devices=sorted({*incident.devices, *devices})))


def end_incident(tx: Tx, incident: Incident, *, cause: str) -> bool:
    """End an incident; False if it had ended already."""
    return record_if_moved(
        tx.by("farm"),
        incidents.update()
        .where(incidents.c.incident_id == incident.incident_id, incidents.c.ended_at.is_(None))
        .values(ended_at=tx.now),
        FleetEvent.INCIDENT_ENDED,
        incident.incident_id,
        from_state="open",
        to_state="ended",
        cause=f"{incident.host_id}: {cause}",
    )
