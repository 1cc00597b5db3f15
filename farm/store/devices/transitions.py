"""What changes of a device by decision: its health, and what operators say of it; each with its event row."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.devices.admin import AdminEvent, advance
from farm.core.devices.device import Admin, Health
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.database.tables import devices
from farm.store.devices.devices import Device
from farm.store.operations.events import record_event, record_if_moved


def move_health(
    connection: Connection,
    device_id: DeviceId,
    *,
    sources: Sequence[Health],
    to: Health,
    now: datetime,
    cause: str,
) -> bool:
    """Compare-and-set of a device's health, with its event row; False when it is not in `sources`."""
    before = connection.execute(
        sa.select(devices.c.health).where(devices.c.device_id == device_id)
    ).scalar_one()
    if before not in sources or before == to:
        return False
    return record_if_moved(
        connection,
        devices.update()
        .where(devices.c.device_id == device_id, devices.c.health == before)
        .values(health=to),
        at=now,
        actor="farm",
        kind=DeviceEvent.HEALTH_CHANGED,
        subject=EventSubject.DEVICE,
        subject_id=device_id,
        from_state=before,
        to_state=to,
        cause=cause,
    )


def move_admin(
    connection: Connection, device: Device, event: AdminEvent, *, now: datetime, actor: str, cause: str | None
) -> Admin | None:
    """Compare-and-set of what operators want of a device; None when it is no longer where `device` says."""
    to = advance(device.admin, event)
    if to is None:
        return None
    moved = record_if_moved(
        connection,
        devices.update()
        .where(devices.c.device_id == device.device_id, devices.c.admin == device.admin)
        .values(admin=to),
        at=now,
        actor=actor,
        kind=event,
        subject=EventSubject.DEVICE,
        subject_id=device.device_id,
        from_state=device.admin,
        to_state=to,
        cause=cause,
    )
    return to if moved else None


def put_label(
    connection: Connection,
    device: Device,
    label: str | None,
    *,
    now: datetime,
    actor: str,
    reason: str | None = None,
) -> bool:
    """Name a device, or take its name away; False when somebody else named it meanwhile.

    Raises:
        sqlalchemy.exc.IntegrityError: another device has the label.
    """
    moved = connection.execute(
        devices.update()
        .where(
            devices.c.device_id == device.device_id,
            devices.c.label.is_not_distinct_from(device.label),
        )
        .values(label=label)
    )
    if moved.rowcount == 1:
        change = f"from {device.label or 'none'} to {label or 'none'}"
        _record(connection, device, DeviceEvent.LABELLED, change, now=now, actor=actor, reason=reason)
    return moved.rowcount == 1


def put_tags(
    connection: Connection,
    device: Device,
    tags: Sequence[str],
    *,
    now: datetime,
    actor: str,
    reason: str | None = None,
) -> None:
    """Give a device its tags; the caller has read `device` in this transaction, and locked it."""
    connection.execute(
        devices.update().where(devices.c.device_id == device.device_id).values(tags=list(tags))
    )
    cause = f"from {', '.join(device.tags) or 'none'} to {', '.join(tags) or 'none'}"
    _record(connection, device, DeviceEvent.TAGGED, cause, now=now, actor=actor, reason=reason)


def rebaseline_device(
    connection: Connection, device: Device, level: str, *, now: datetime, actor: str, reason: str
) -> bool:
    """Begin a band of a device's own; False when somebody else did meanwhile."""
    moved = connection.execute(
        devices.update()
        .where(
            devices.c.device_id == device.device_id,
            devices.c.rebaselined_at.is_not_distinct_from(device.rebaselined_at),
        )
        .values(rebaselined_at=now)
    )
    if moved.rowcount == 1:
        _record(connection, device, DeviceEvent.REBASELINED, level, now=now, actor=actor, reason=reason)
    return moved.rowcount == 1


def put_reservation(
    connection: Connection, device: Device, *, by: str, until: datetime, now: datetime, actor: str, cause: str
) -> bool:
    """Take a device out of the pool for a person; False when its hold is no longer what `device` says."""
    moved = connection.execute(_if_reservation_unchanged(device).values(reserved_by=by, reserved_until=until))
    if moved.rowcount == 1:
        _record(connection, device, DeviceEvent.RESERVED, cause, now=now, actor=actor)
    return moved.rowcount == 1


def end_reservation(connection: Connection, device: Device, *, now: datetime, actor: str, cause: str) -> bool:
    """Give a device back to the pool; False when its hold is no longer what `device` says."""
    if device.reserved_by is None:
        return False
    moved = connection.execute(
        _if_reservation_unchanged(device).values(reserved_by=None, reserved_until=None)
    )
    if moved.rowcount == 1:
        _record(connection, device, DeviceEvent.RELEASED, cause, now=now, actor=actor)
    return moved.rowcount == 1


def record_asserted_clean(
    connection: Connection, device: Device, *, now: datetime, actor: str, reason: str | None
) -> None:
    """Note on somebody's word that nothing up to the last token is left on a device."""
    connection.execute(
        devices.update()
        .where(devices.c.device_id == device.device_id, devices.c.fence == device.fence)
        .values(cleaned_fence=device.fence)
    )
    cause = f"up to token {device.fence}, from {device.cleaned_fence}"
    kind = DeviceEvent.ASSERTED_CLEAN
    _record(connection, device, kind, cause, now=now, actor=actor, reason=reason)


def overdue_reservations(connection: Connection, now: datetime) -> list[DeviceId]:
    """Devices that were held until now at the latest."""
    query = sa.select(devices.c.device_id).where(devices.c.reserved_until <= now)
    return list(connection.execute(query).scalars())


def lock_device(connection: Connection, device_id: DeviceId) -> None:
    """Have nobody else change the device's row until this transaction ends."""
    connection.execute(
        sa.select(devices.c.device_id).where(devices.c.device_id == device_id).with_for_update()
    )


def _if_reservation_unchanged(device: Device) -> sa.Update:
    return devices.update().where(
        devices.c.device_id == device.device_id,
        devices.c.reserved_by.is_not_distinct_from(device.reserved_by),
        devices.c.reserved_until.is_not_distinct_from(device.reserved_until),
    )


def _record(
    connection: Connection,
    device: Device,
    kind: DeviceEvent,
    cause: str,
    *,
    now: datetime,
    actor: str,
    reason: str | None = None,
) -> None:
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=kind,
        subject=EventSubject.DEVICE,
        subject_id=device.device_id,
        cause=cause if reason is None else f"{cause}: {reason}",
    )
