"""The record of a device's settings, in its row."""

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.upkeep.device_settings import DeviceSettingsRecord
from farm.database.tables import devices

_RECORD = TypeAdapter(DeviceSettingsRecord)


def find_settings_record(connection: Connection, device_id: DeviceId) -> DeviceSettingsRecord | None:
    """Return the record of a device's settings; None if they were never checked."""
    document = connection.execute(
        sa.select(devices.c.settings_record).where(devices.c.device_id == device_id)
    ).scalar_one_or_none()
    return None if document is None else _RECORD.validate_python(document, strict=False)


def put_settings_record(connection: Connection, device_id: DeviceId, record: DeviceSettingsRecord) -> None:
    """Replace the record; its event is that of the device action."""
    document = _RECORD.dump_python(record, mode="json")
    connection.execute(
        devices.update().where(devices.c.device_id == device_id).values(settings_record=document)
    )
