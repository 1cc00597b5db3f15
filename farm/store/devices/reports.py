"""Reported states of devices; each change of presence has its event."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.condition import Condition
from farm.core.devices.device import Admin, Health, Presence
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.core.upkeep.recovery import Recovery
from farm.database.tables import UtcTime, devices
from farm.store.devices.devices import Device, get_device
from farm.store.operations.events import record_event

_CONDITION = TypeAdapter(Condition)
_RECOVERY = TypeAdapter(Recovery)


def add_device(
    connection: Connection, *, device_id: DeviceId, host_id: HostId, serial: str, admin: Admin, now: datetime
) -> Device:
    """Add a device that the farm detects for the first time."""
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
        subject=EventSubject.DEVICE,
        subject_id=device_id,
        to_state=admin,
    )
    return get_device(connection, device_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatusUpdate:
    """The current state of a device as its agent reports it."""

    #: The device before this report.
    device: Device
    serial: str
    presence: Presence
    detail: str | None
    #: None: unchanged.
    condition: Condition | None
    #: Its recovery episode.
    recovery: Recovery | None = None
    #: One below what is recorded changes nothing; one above the last claim is the caller's to heed.
    cleaned_fence: int

    def is_unchanged(self, host_id: HostId) -> bool:
        """Return True if the device's row has the same state already, but for the time of the report."""
        before = self.device
        return (
            (before.host_id, before.serial, before.presence) == (host_id, self.serial, self.presence)
            and before.detail == self.detail
            and self.condition in (None, before.condition)
            and self.recovery == before.recovery
            and self.cleaned_fence <= before.cleaned_fence
        )


def record_status_updates(
    connection: Connection, host_id: HostId, seen: Sequence[DeviceStatusUpdate], *, now: datetime
) -> None:
    """Record the reported state of devices; a changed presence gets its event row.

    In one statement for all that are as before, and in another for all others.
    """
    old = [each.device.device_id for each in seen if each.is_unchanged(host_id)]
    new = [each for each in seen if not each.is_unchanged(host_id)]
    if old:
        connection.execute(_unchanged_statement(), {"device_ids": old, "moment": now})
    for with_condition in (True, False):
        some = [each for each in new if (each.condition is not None) is with_condition]
        if some:
            connection.execute(_status_update_statement(), [_values(each, host_id, now) for each in some])
    for each in new:
        _record(connection, each, host_id, now=now)


def _values(seen: DeviceStatusUpdate, host_id: HostId, now: datetime) -> dict[str, Any]:
    values = {
        "of_device": seen.device.device_id,
        "host_id": host_id,
        "serial": seen.serial,
        "presence": seen.presence,
        "detail": seen.detail,
        "recovery": None if seen.recovery is None else _RECOVERY.dump_python(seen.recovery, mode="json"),
        "cleaned_fence": max(seen.cleaned_fence, seen.device.cleaned_fence),
        "seen_at": now,
    }
    if seen.condition is not None:
        values["condition"] = _CONDITION.dump_python(seen.condition, mode="json")
    return values


def _record(connection: Connection, seen: DeviceStatusUpdate, host_id: HostId, *, now: datetime) -> None:
    device = seen.device
    if host_id != device.host_id:
        record_event(
            connection,
            at=now,
            actor=f"agent:{host_id}",
            kind=DeviceEvent.MOVED,
            subject=EventSubject.DEVICE,
            subject_id=device.device_id,
            cause=f"from host {device.host_id} to {host_id}",
        )
    if seen.presence is not device.presence:
        record_event(
            connection,
            at=now,
            actor=f"agent:{host_id}",
            kind=DeviceEvent.PRESENCE_CHANGED,
            subject=EventSubject.DEVICE,
            subject_id=device.device_id,
            from_state=device.presence,
            to_state=seen.presence,
            cause=seen.detail,
        )


@cache
def _status_update_statement() -> sa.Update:
    """Build the statement once: every exchange runs it. Its parameters name the columns to set."""
    return devices.update().where(devices.c.device_id == sa.bindparam("of_device"))


@cache
def _unchanged_statement() -> sa.Update:
    asked = devices.c.device_id.in_(sa.bindparam("device_ids", expanding=True))
    return devices.update().where(asked).values(seen_at=sa.bindparam("moment", type_=UtcTime()))


def mark_absent(
    connection: Connection, device_id: DeviceId, *, presence: Presence, now: datetime, cause: str
) -> None:
    """Mark a device as absent: its agent no longer lists it, or is gone."""
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
        subject=EventSubject.DEVICE,
        subject_id=device_id,
        from_state=presence,
        to_state=Presence.ABSENT,
        cause=cause,
    )
