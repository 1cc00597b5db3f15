"""Recent failures of the devices of a host."""

from collections.abc import Collection
from datetime import datetime
from itertools import takewhile

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.checks.health import HealthChange
from farm.core.checks.incident import DeviceFailure, became_unreachable, may_be_host_caused
from farm.core.devices.device import Presence
from farm.core.errors import Blame
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.database.tables import attempts, events

#: More than a device can fail within the examined time.
_LAST_ATTEMPTS = 5


def disconnects_since(
    connection: Connection, device_ids: Collection[DeviceId], since: datetime
) -> list[DeviceFailure]:
    """Return when online devices became unreachable since a time, oldest first."""
    query = (
        sa.select(events.c.subject_id, events.c.at, events.c.to_state)
        .where(
            events.c.subject == EventSubject.DEVICE,
            events.c.subject_id.in_(device_ids),
            events.c.kind == DeviceEvent.PRESENCE_CHANGED,
            events.c.from_state == Presence.ONLINE,
            events.c.at >= since,
        )
        .order_by(events.c.event_id)
    )
    return [
        DeviceFailure(device_id=DeviceId(row.subject_id), at=row.at)
        for row in connection.execute(query)
        if became_unreachable(Presence.ONLINE, Presence(row.to_state))
    ]


def boots_since(connection: Connection, device_id: DeviceId, since: datetime) -> list[datetime]:
    """Return when a device began to boot since a time, oldest first; only boots after it was last online."""
    query = (
        sa.select(events.c.at, events.c.to_state)
        .where(
            events.c.subject == EventSubject.DEVICE,
            events.c.subject_id == device_id,
            events.c.kind == DeviceEvent.PRESENCE_CHANGED,
            events.c.at >= since,
        )
        .order_by(events.c.event_id.desc())
    )
    changes = takewhile(lambda row: row.to_state != Presence.ONLINE, connection.execute(query))
    return [row.at for row in changes if row.to_state == Presence.BOOTING][::-1]


def failures_since(
    connection: Connection, device_ids: Collection[DeviceId], since: datetime
) -> list[DeviceFailure]:
    """Return failed attempts since a time that are blamed on their devices but may be caused by the host."""
    failures: list[DeviceFailure] = []
    for device_id in device_ids:
        query = (
            sa.select(attempts.c.finished_at, attempts.c.blame, attempts.c.code)
            .where(attempts.c.device_id == device_id)
            .order_by(attempts.c.fence.desc())
            .limit(_LAST_ATTEMPTS)
        )
        failures += [
            DeviceFailure(device_id=device_id, at=row.finished_at)
            for row in connection.execute(query)
            if row.finished_at is not None and row.finished_at >= since
            if may_be_host_caused(None if row.blame is None else Blame(row.blame), row.code)
        ]
    return failures


def health_changes_since(
    connection: Connection, device_ids: Collection[DeviceId], since: datetime
) -> list[HealthChange]:
    """Return how the health of devices changed since then, oldest first."""
    query = (
        sa.select(events.c.subject_id, events.c.at, events.c.from_state)
        .where(
            events.c.subject == EventSubject.DEVICE,
            events.c.subject_id.in_(device_ids),
            events.c.kind == DeviceEvent.HEALTH_CHANGED,
            events.c.at >= since,
        )
        .order_by(events.c.event_id)
    )
    return [
        HealthChange(device_id=DeviceId(row.subject_id), at=row.at, before=row.from_state)
        for row in connection.execute(query)
    ]
