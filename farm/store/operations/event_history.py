"""The event history of single subjects."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.database.tables import events


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event without its subject."""

    at: datetime
    actor: str
    kind: str
    from_state: str | None
    to_state: str | None
    cause: str | None


def last_events(
    connection: Connection,
    subject: str,
    subject_id: object,
    *,
    kinds: Collection[str] = (),
    limit: int = 1,
) -> list[Event]:
    """Return the last events of a subject, newest first; of these kinds only, if any are given."""
    query = (
        sa.select(events)
        .where(events.c.subject == subject, events.c.subject_id == str(subject_id))
        .order_by(events.c.event_id.desc())
        .limit(limit)
    )
    if kinds:
        query = query.where(events.c.kind.in_(kinds))
    return [
        Event(
            at=row.at,
            actor=row.actor,
            kind=row.kind,
            from_state=row.from_state,
            to_state=row.to_state,
            cause=row.cause,
        )
        for row in connection.execute(query)
    ]


def last_online_at(connection: Connection, device_id: DeviceId) -> datetime | None:
    """Return when a device was last online; None if it never was."""
    query = _last_change_query(device_id, DeviceEvent.PRESENCE_CHANGED).where(
        events.c.from_state == Presence.ONLINE
    )
    return connection.execute(query).scalar()


def health_since(connection: Connection, device_id: DeviceId) -> datetime | None:
    """Return when a device's health last changed; None if it never did."""
    return connection.execute(_last_change_query(device_id, DeviceEvent.HEALTH_CHANGED)).scalar()


def devices_with_events_since(
    connection: Connection, kind: DeviceEvent, since: datetime
) -> dict[DeviceId, str | None]:
    """Return the devices with events of a kind since a time, with the newest cause of each."""
    query = (
        sa.select(events.c.subject_id, events.c.cause)
        .where(events.c.kind == kind, events.c.at >= since)
        .order_by(events.c.event_id)
    )
    return {DeviceId(row.subject_id): row.cause for row in connection.execute(query)}


def _last_change_query(device_id: DeviceId, kind: DeviceEvent) -> sa.Select[Any]:
    """Return the query of the time of a device's last event of a kind."""
    return (
        sa.select(events.c.at)
        .where(
            events.c.subject == EventSubject.DEVICE, events.c.subject_id == device_id, events.c.kind == kind
        )
        .order_by(events.c.event_id.desc())
        .limit(1)
    )
