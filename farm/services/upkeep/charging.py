"""What agents do about the charging of phones, in the event log."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.condition import Condition
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.store.devices.devices import Device
from farm.store.operations.events import record_event


def record_charging(
    connection: Connection, device: Device, condition: Condition | None, host_id: HostId, *, now: datetime
) -> None:
    """Tell of a change; `device` is as it was before this condition came."""
    before = device.condition.charging_note if device.condition else None
    if condition is None or condition.charging_note == before:
        return
    record_event(
        connection,
        at=now,
        actor=f"agent:{host_id}",
        kind=DeviceEvent.CHARGING_CHANGED,
        subject=EventSubject.DEVICE,
        subject_id=device.device_id,
        cause=condition.charging_note or "it charges as it likes",
    )
