"""Reported states of devices; each change of presence has its event."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.condition import Condition
from farm.core.devices.device import Admin, Health, Presence
from farm.core.operations.event import DeviceEvent
from farm.core.upkeep.recovery import Recovery
from farm.database.tables import UtcTime, devices
from farm.database.transaction import Tx
from farm.store.devices.devices import Device, get_device
from farm.store.operations.events import record_event
from farm.wire.agents.protocol import DeviceReport

_CONDITION = TypeAdapter(Condition)
_RECOVERY = TypeAdapter(Recovery)


def add_device(tx: Tx, *, device_id: DeviceId, host_id: HostId, serial: str, admin: Admin) -> Device:
    """Add a device that the farm detects for the first time."""
    tx.connection.execute(
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
            created_at=tx.now,
            seen_at=tx.now,
        )
    )
    record_event(tx.by(f"agent:{host_id}"), DeviceEvent.FOUND, device_id, to_state=admin)
    return get_device(tx.connection, device_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatusUpdate:
    """An agent's report of a device."""

    #: The device before this report.
    device: Device
    report: DeviceReport
    #: Not always the reported one: a device of which too little is known is not online.
    presence: Presence
    #: One below what is recorded changes nothing; one above the last claim is the caller's to apply.
    cleaned_fence: int

    def is_unchanged(self, host_id: HostId) -> bool:
        """Return True if the device's row has the same state already, but for the time of the report."""
        before, report = self.device, self.report
        return (
            (before.host_id, before.serial, before.presence) == (host_id, report.serial, self.presence)
            and before.detail == report.detail
            and report.condition in (None, before.condition)
            and report.recovery == before.recovery
            and self.cleaned_fence <= before.cleaned_fence
        )


#: Its parameters name the columns to set.
_STATUS_UPDATE_STATEMENT = devices.update().where(devices.c.device_id == sa.bindparam("of_device"))
_UNCHANGED_STATEMENT = (
    devices.update()
    .where(devices.c.device_id.in_(sa.bindparam("device_ids", expanding=True)))
    .values(seen_at=sa.bindparam("moment", type_=UtcTime()))
)


def record_status_updates(tx: Tx, host_id: HostId, seen: Sequence[DeviceStatusUpdate]) -> None:
    """Record the reported state of devices; a changed presence gets its event row.

    In one statement for all that are as before, and in another for all others.
    """
    old = [update.device.device_id for update in seen if update.is_unchanged(host_id)]
    new = [update for update in seen if not update.is_unchanged(host_id)]
    if old:
        tx.connection.execute(_UNCHANGED_STATEMENT, {"device_ids": old, "moment": tx.now})
    for with_condition in (True, False):
        some = [update for update in new if (update.report.condition is not None) is with_condition]
        if some:
            tx.connection.execute(
                _STATUS_UPDATE_STATEMENT, [_values(update, host_id, tx.now) for update in some]
            )
    for update in new:
        _record(tx, update, host_id)


def _values(seen: DeviceStatusUpdate, host_id: HostId, now: datetime) -> dict[str, Any]:
    report = seen.report
    values = {
        "of_device": seen.device.device_id,
        "host_id": host_id,
        "serial": report.serial,
        "presence": seen.presence,
        "detail": report.detail,
        "recovery": None if report.recovery is None else _RECOVERY.dump_python(report.recovery, mode="json"),
        "cleaned_fence": max(seen.cleaned_fence, seen.device.cleaned_fence),
        "seen_at": now,
    }
    if report.condition is not None:
        values["condition"] = _CONDITION.dump_python(report.condition, mode="json")
    return values


def _record(tx: Tx, seen: DeviceStatusUpdate, host_id: HostId) -> None:
    device = seen.device
    if host_id != device.host_id:
        cause = f"from host {device.host_id} to {host_id}"
        record_event(tx.by(f"agent:{host_id}"), DeviceEvent.MOVED, device.device_id, cause=cause)
    if seen.presence is not device.presence:
        record_event(
            tx.by(f"agent:{host_id}"),
            DeviceEvent.PRESENCE_CHANGED,
            device.device_id,
            from_state=device.presence,
            to_state=seen.presence,
            cause=seen.report.detail,
        )


def mark_absent(tx: Tx, device_id: DeviceId, *, presence: Presence, cause: str) -> None:
    """Mark a device as absent: its agent no longer lists it, or is gone."""
    tx.connection.execute(
        devices.update()
        .where(devices.c.device_id == device_id)
        .values(presence=Presence.ABSENT, detail=cause)
    )
    record_event(
        tx.by("farm"),
        DeviceEvent.PRESENCE_CHANGED,
        device_id,
        from_state=presence,
        to_state=Presence.ABSENT,
        cause=cause,
    )
