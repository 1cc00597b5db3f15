"""Incidents of hosts: opened, widened and ended, each change with its event row."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.checks.incident import Incident
from farm.core.devices.host_state import IncidentKind
from farm.core.operations.event import EventSubject, FleetEvent
from farm.database.tables import incidents
from farm.store.operations.events import record_event, record_if_moved


def open_incidents(connection: Connection, host_id: HostId | None = None) -> list[Incident]:
    """Return the open incidents of all hosts or of one, oldest first."""
    query = _open_query() if host_id is None else _open_of_host_query()
    incidents_of_host = [_incident(row) for row in connection.execute(query, {"host_id": host_id})]
    return sorted(incidents_of_host, key=lambda incident: incident.incident_id)


@cache
def _open_query() -> sa.Select[Any]:
    return sa.select(incidents).where(incidents.c.ended_at.is_(None))


@cache
def _open_of_host_query() -> sa.Select[Any]:
    """Build the query once: every exchange runs it."""
    return _open_query().where(incidents.c.host_id == sa.bindparam("host_id"))


def last_incidents(connection: Connection, host_id: HostId, *, limit: int) -> list[Incident]:
    """Return the last incidents of a host, newest first."""
    query = (
        sa.select(incidents)
        .where(incidents.c.host_id == host_id)
        .order_by(incidents.c.incident_id.desc())
        .limit(limit)
    )
    return [_incident(row) for row in connection.execute(query)]


def incidents_since(connection: Connection, host_ids: Collection[HostId], since: datetime) -> list[Incident]:
    """Return the incidents of hosts that were open at some time since `since`."""
    query = sa.select(incidents).where(
        incidents.c.host_id.in_(host_ids),
        sa.or_(incidents.c.ended_at.is_(None), incidents.c.ended_at >= since),
    )
    return [_incident(row) for row in connection.execute(query)] if host_ids else []


def add_incident(
    connection: Connection,
    host_id: HostId,
    kind: IncidentKind,
    *,
    began_at: datetime,
    devices: Collection[DeviceId],
    cause: str,
    now: datetime,
) -> Incident:
    """Open an incident; the caller has checked that the host has no open one of its kind."""
    row = connection.execute(
        incidents.insert()
        .values(host_id=host_id, kind=kind, began_at=began_at, devices=sorted(devices), cause=cause)
        .returning(incidents)
    ).one()
    record_event(
        connection,
        at=now,
        actor="farm",
        kind=FleetEvent.INCIDENT_OPENED,
        subject=EventSubject.INCIDENT,
        subject_id=row.incident_id,
        to_state="open",
        cause=f"{host_id}: {cause}",
    )
    return _incident(row)


def widen_incident(connection: Connection, incident: Incident, devices: Collection[DeviceId]) -> Incident:
    """Add devices to those that an open incident affects."""
    row = connection.execute(
        incidents.update()
        .where(incidents.c.incident_id == incident.incident_id)
        .values(devices=sorted({*incident.devices, *devices}))
        .returning(incidents)
    ).one()
    return _incident(row)


def end_incident(connection: Connection, incident: Incident, *, now: datetime, cause: str) -> bool:
    """End an incident; False if it had ended already."""
    return record_if_moved(
        connection,
        incidents.update()
        .where(incidents.c.incident_id == incident.incident_id, incidents.c.ended_at.is_(None))
        .values(ended_at=now),
        at=now,
        actor="farm",
        kind=FleetEvent.INCIDENT_ENDED,
        subject=EventSubject.INCIDENT,
        subject_id=incident.incident_id,
        from_state="open",
        to_state="ended",
        cause=f"{incident.host_id}: {cause}",
    )


def _incident(row: sa.Row[Any]) -> Incident:
    device_ids: Sequence[str] = row.devices
    return Incident(
        incident_id=row.incident_id,
        host_id=HostId(row.host_id),
        kind=IncidentKind(row.kind),
        began_at=row.began_at,
        ended_at=row.ended_at,
        devices=tuple(map(DeviceId, device_ids)),
        cause=row.cause,
    )
