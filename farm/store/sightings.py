"""What agents see of phones, in the devices' rows: what changes who can be given work has its event."""

from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.condition import Condition
from farm.core.device import Admin, Health, Presence
from farm.core.event import DeviceEvent, Subject
from farm.core.ids import DeviceId, HostId
from farm.store.devices import Device, get_device
from farm.store.events import record_event
from farm.store.tables import devices

_CONDITION = TypeAdapter(Condition)


def add_device(
    connection: Connection, *, device_id: DeviceId, host_id: HostId, serial: str, admin: Admin, now: datetime
) -> Device:
    """A phone the farm sees for the first time."""
    connection.execute(
        devices.insert().values(
            device_id=device_id,
            host_id=host_id,
            serial=serial,
            presence=Presence.ABSENT,
            health=Health.UNKNOWN,
            admin=admin,
            fence=0,
            cleaned_fence=0,
            tags=[],
            created_at=now,
            seen_at=now,
        )
    )
    record_event(
        connection,
        at=now,
        actor=f"agent:{host_id}",
        kind=DeviceEvent.FOUND,
        subject=Subject.DEVICE,
        subject_id=device_id,
        to_state=admin,
    )
    return get_device(connection, device_id)


def update_seen(
    connection: Connection,
    device: Device,
    *,
    host_id: HostId,
    serial: str,
    presence: Presence,
    detail: str | None,
    condition: Condition | None,
    cleaned_fence: int,
    now: datetime,
) -> None:
    """Note what the agent sees of a device now; a changed presence gets its event row.

    A clean-up record quoting a token below what is recorded changes nothing. One above the last claim is the
    caller's to heed.
    """
    values: dict[str, Any] = {
        "host_id": host_id,
        "serial": serial,
        "presence": presence,
        "detail": detail,
        "seen_at": now,
    }
    if condition is not None:
        values["condition"] = _CONDITION.dump_python(condition, mode="json")
    if cleaned_fence > device.cleaned_fence:
        values["cleaned_fence"] = cleaned_fence
    connection.execute(_seen(), {"of_device": device.device_id, **values})
    if host_id != device.host_id:
        record_event(
            connection,
            at=now,
            actor=f"agent:{host_id}",
            kind=DeviceEvent.MOVED,
            subject=Subject.DEVICE,
            subject_id=device.device_id,
            cause=f"from host {device.host_id} to {host_id}",
        )
    if presence is not device.presence:
        record_event(
            connection,
            at=now,
            actor=f"agent:{host_id}",
            kind=DeviceEvent.PRESENCE_CHANGED,
            subject=Subject.DEVICE,
            subject_id=device.device_id,
            from_state=device.presence,
            to_state=presence,
            cause=detail,
        )


@cache
def _seen() -> sa.Update:
    """Built once: every exchange notes each phone. What it sets, its parameters name."""
    return devices.update().where(devices.c.device_id == sa.bindparam("of_device"))


def mark_absent(
    connection: Connection, device_id: DeviceId, *, presence: Presence, now: datetime, cause: str
) -> None:
    """A device its agent no longer lists, or whose agent is gone."""
    connection.execute(
        devices.update()
        .where(devices.c.device_id == device_id)
        .values(presence=Presence.ABSENT, detail=cause)
    )
    record_event(
        connection,
        at=now,
        actor="farm",
        kind=DeviceEvent.PRESENCE_CHANGED,
        subject=Subject.DEVICE,
        subject_id=device_id,
        from_state=presence,
        to_state=Presence.ABSENT,
        cause=cause,
    )
