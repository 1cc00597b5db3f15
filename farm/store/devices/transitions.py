"""Changes of a device's health, admin state, label, tags, reservation and token, with their events."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.devices.admin import AdminEvent, advance
from farm.core.devices.device import Admin, Health
from farm.core.operations.event import DeviceEvent, OperatorEvent
from farm.database.tables import devices
from farm.database.transaction import Tx
from farm.store.devices.devices import Device
from farm.store.operations.events import record_event, record_if_moved


def move_health(tx: Tx, device_id: DeviceId, *, sources: Sequence[Health], to: Health, cause: str) -> bool:
    """Change a device's health by compare-and-set with its event row; False if it is not in `sources`."""
    before = tx.connection.execute(
        sa.select(devices.c.health).where(devices.c.device_id == device_id)
    ).scalar_one()
    if before not in sources or before == to:
        return False
    return record_if_moved(
        tx.by("farm"),
        devices.update()
        .where(devices.c.device_id == device_id, devices.c.health == before)
        .values(health=to),
        DeviceEvent.HEALTH_CHANGED,
        device_id,
        from_state=before,
        to_state=to,
        cause=cause,
    )


def move_admin(tx: Tx, device: Device, event: AdminEvent, *, cause: str | None) -> Admin | None:
    """Change a device's administrative state by compare-and-set; None if it changed since `device`."""
    to = advance(device.admin, event)
    if to is None:
        return None
    moved = record_if_moved(
        tx,
        devices.update()
        .where(devices.c.device_id == device.device_id, devices.c.admin == device.admin)
        .values(admin=to),
        event,
        device.device_id,
        from_state=device.admin,
        to_state=to,
        cause=cause,
    )
    return to if moved else None


def put_label(tx: Tx, device: Device, label: str | None, *, reason: str | None = None) -> bool:
    """Set or remove a device's label; False if it changed in the meantime.

    Raises:
        sqlalchemy.exc.IntegrityError: another device has the label.
    """
    update = devices.update().where(_is_unchanged(device, "label")).values(label=label)
    change = f"from {device.label or 'none'} to {label or 'none'}"
    return _change(tx, device, update, OperatorEvent.LABELLED, change, reason=reason)


def put_tags(tx: Tx, device: Device, tags: Sequence[str], *, reason: str | None = None) -> None:
    """Set a device's tags; the caller has locked the device in this transaction."""
    update = devices.update().where(devices.c.device_id == device.device_id).values(tags=list(tags))
    cause = f"from {', '.join(device.tags) or 'none'} to {', '.join(tags) or 'none'}"
    _change(tx, device, update, OperatorEvent.TAGGED, cause, reason=reason)


def rebaseline_device(tx: Tx, device: Device, level: str, *, reason: str) -> bool:
    """Re-baseline a device, whose reference range begins again; False if it changed in the meantime."""
    update = devices.update().where(_is_unchanged(device, "rebaselined_at")).values(rebaselined_at=tx.now)
    return _change(tx, device, update, OperatorEvent.REBASELINED, level, reason=reason)


def put_reservation(tx: Tx, device: Device, *, by: str, until: datetime, cause: str) -> bool:
    """Reserve a device for a person; False if its reservation is not as in `device` any more."""
    as_read = _is_unchanged(device, "reserved_by", "reserved_until")
    update = devices.update().where(as_read).values(reserved_by=by, reserved_until=until)
    return _change(tx, device, update, OperatorEvent.RESERVED, cause)


def end_reservation(tx: Tx, device: Device, *, cause: str) -> bool:
    """Release a device; False if its reservation is not as in `device` any more."""
    if device.reserved_by is None:
        return False
    as_read = _is_unchanged(device, "reserved_by", "reserved_until")
    update = devices.update().where(as_read).values(reserved_by=None, reserved_until=None)
    return _change(tx, device, update, OperatorEvent.RELEASED, cause)


def record_asserted_clean(tx: Tx, device: Device, *, reason: str | None) -> None:
    """Record an operator's assertion that the device is clean up to its last token."""
    update = devices.update().where(_is_unchanged(device, "fence")).values(cleaned_fence=device.fence)
    cause = f"up to token {device.fence}, from {device.cleaned_fence}"
    _change(tx, device, update, OperatorEvent.ASSERTED_CLEAN, cause, reason=reason)


def overdue_reservations(tx: Tx) -> list[DeviceId]:
    """Return the devices whose reservation has ended."""
    query = sa.select(devices.c.device_id).where(devices.c.reserved_until <= tx.now)
    return list(tx.connection.execute(query).scalars())


def lock_device(connection: Connection, device_id: DeviceId) -> None:
    """Lock the device's row until this transaction ends."""
    connection.execute(
        sa.select(devices.c.device_id).where(devices.c.device_id == device_id).with_for_update()
    )


def _is_unchanged(device: Device, *columns: str) -> sa.ColumnElement[bool]:
    """Return the condition that a row is a device's, with the same values in these columns."""
    as_read = (devices.c[name].is_not_distinct_from(getattr(device, name)) for name in columns)
    return sa.and_(devices.c.device_id == device.device_id, *as_read)


def _change(
    tx: Tx, device: Device, update: sa.Update, kind: OperatorEvent, cause: str, *, reason: str | None = None
) -> bool:
    """Run a compare-and-set and record its event; False, and no event, if it changed no row."""
    is_changed = tx.connection.execute(update).rowcount == 1
    if is_changed:
        record_event(tx, kind, device.device_id, cause=cause if reason is None else f"{cause}: {reason}")
    return is_changed


def raise_fence_to(tx: Tx, device_id: DeviceId, fence: int, *, cause: str) -> None:
    """Raise the device's token to `fence`, unless it is that high already.

    The device then needs a clean-up: a run that the database does not know took place on it.
    """
    query = sa.select(devices.c.fence).where(devices.c.device_id == device_id)
    before = tx.connection.execute(query).scalar_one()
    update = tx.connection.execute(
        devices.update().where(devices.c.device_id == device_id, devices.c.fence < fence).values(fence=fence)
    )
    if update.rowcount == 1:
        record_event(
            tx, DeviceEvent.FENCE_RAISED, device_id, from_state=str(before), to_state=str(fence), cause=cause
        )


def raise_all_fences(tx: Tx, by: int, *, cause: str) -> None:
    """Skip the next tokens of every device."""
    rows = tx.connection.execute(
        sa.select(devices.c.device_id, devices.c.fence).order_by(devices.c.device_id)
    )
    for row in rows.all():
        raise_fence_to(tx, row.device_id, row.fence + by, cause=cause)
