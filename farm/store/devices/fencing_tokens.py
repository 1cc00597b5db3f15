"""Fencing tokens of devices, raised without a claim; each change with its event row."""

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.database.tables import devices
from farm.store.operations.events import record_event


def fences(connection: Connection, host_id: HostId, device_ids: Collection[DeviceId]) -> dict[DeviceId, int]:
    """Return the last tokens of those devices that belong to the host."""
    if not device_ids:
        return {}
    query = sa.select(devices.c.device_id, devices.c.fence).where(
        devices.c.host_id == host_id, devices.c.device_id.in_(device_ids)
    )
    return {DeviceId(row.device_id): row.fence for row in connection.execute(query)}


def raise_fence_to(
    connection: Connection, device_id: DeviceId, fence: int, *, now: datetime, actor: str, cause: str
) -> None:
    """Raise the device's token to `fence`, unless it is that high already.

    The device then needs a clean-up: a run that the database does not know took place on it.
    """
    query = sa.select(devices.c.fence).where(devices.c.device_id == device_id)
    before = connection.execute(query).scalar_one()
    update = connection.execute(
        devices.update().where(devices.c.device_id == device_id, devices.c.fence < fence).values(fence=fence)
    )
    if update.rowcount == 1:
        record_fence_raised(connection, device_id, before, fence, now=now, actor=actor, cause=cause)


def raise_all_fences(connection: Connection, by: int, *, now: datetime, actor: str, cause: str) -> None:
    """Skip the next tokens of every device."""
    rows = connection.execute(sa.select(devices.c.device_id, devices.c.fence).order_by(devices.c.device_id))
    for row in rows.all():
        raise_fence_to(connection, row.device_id, row.fence + by, now=now, actor=actor, cause=cause)


def record_fence_raised(
    connection: Connection,
    device_id: DeviceId,
    before: int,
    fence: int,
    *,
    now: datetime,
    actor: str,
    cause: str,
) -> None:
    """Record the event of a token that was raised without a claim."""
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=DeviceEvent.FENCE_RAISED,
        subject=EventSubject.DEVICE,
        subject_id=device_id,
        from_state=str(before),
        to_state=str(fence),
        cause=cause,
    )
