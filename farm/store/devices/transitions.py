"""Changes of a device's health, administrative state, label, tags and reservation, with their events."""

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
    """Change a device's health by compare-and-set with its event row; False if it is not in `sources`."""
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
    """Change a device's administrative state by compare-and-set; None if it changed since `device`."""
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
    """Set or remove a device's label; False if it changed in the meantime.

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
    """Set a device's tags; the caller has locked the device in this transaction."""
    connection.execute(
        devices.update().where(devices.c.device_id == device.device_id).values(tags=list(tags))
    )
    cause = f"from {', '.join(device.tags) or 'none'} to {', '.join(tags) or 'none'}"
    _record(connection, device, DeviceEvent.TAGGED, cause, now=now, actor=actor, reason=reason)


def rebaseline_device(
    connection: Connection, device: Device, level: str, *, now: datetime, actor: str, reason: str
) -> bool:
    """Re-baseline a device, whose reference range begins anew; False if it changed in the meantime."""
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
    """Reserve a device for a person; False if its reservation is not as in `device` any more."""
    moved = connection.execute(_if_reservation_unchanged(device).values(reserved_by=by, reserved_until=until))
    if moved.rowcount == 1:
        _record(connection, device, DeviceEvent.RESERVED, cause, now=now, actor=actor)
    return moved.rowcount == 1


def end_reservation(connection: Connection, device: Device, *, now: datetime, actor: str, cause: str) -> bool:
    """Release a device; False if its reservation is not as in `device` any more."""
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
    """Record an operator's assertion that the device is clean up to its last token."""
    connection.execute(
        devices.update()
        .where(devices.c.device_id == device.device_id, devices.c.fence == device.fence)
        .values(cleaned_fence=device.fence)
    )
    cause = f"up to token {device.fence}, from {device.cleaned_fence}"
    kind = DeviceEvent.ASSERTED_CLEAN
    _record(connection, device, kind, cause, now=now, actor=actor, reason=reason)


def overdue_reservations(connection: Connection, now: datetime) -> list[DeviceId]:
    """Return the devices whose reservation has ended."""
    query = sa.select(devices.c.device_id).where(devices.c.reserved_until <= now)
    return list(connection.execute(query).scalars())


def lock_device(connection: Connection, device_id: DeviceId) -> None:
    """Lock the device's row until this transaction ends."""
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
