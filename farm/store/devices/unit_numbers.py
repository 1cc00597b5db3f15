"""Numbers of the phones of one device model."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.database.tables import device_facts, devices
from farm.store.operations.events import record_event


def assign_unit_number(
    connection: Connection, device_id: DeviceId, device_model: str, *, now: datetime
) -> None:
    """Number a phone among those of its device model, from 1; one that has a number keeps it.

    Retired phones keep theirs, so none is given again.
    """
    taken = (
        sa.select(sa.func.coalesce(sa.func.max(devices.c.unit), 0))
        .join(device_facts, device_facts.c.facts_id == devices.c.facts_id)
        .where(device_facts.c.facts["device_model"].as_string() == device_model)
    )
    unit = connection.execute(taken).scalar_one() + 1
    numbered = connection.execute(
        devices.update().where(devices.c.device_id == device_id, devices.c.unit.is_(None)).values(unit=unit)
    )
    if numbered.rowcount:
        record_event(
            connection,
            at=now,
            actor="farm",
            kind=DeviceEvent.NUMBERED,
            subject=EventSubject.DEVICE,
            subject_id=device_id,
            cause=f"unit {unit} of {device_model}",
        )
