"""What was last done about the settings of a phone, in its row."""

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.upkeep.device_settings import DeviceSettingsRecord
from farm.database.tables import devices

_RECORD = TypeAdapter(DeviceSettingsRecord)


def find_settings_record(connection: Connection, device_id: DeviceId) -> DeviceSettingsRecord | None:
    """None: nobody has looked at its settings yet."""
    found = connection.execute(
        sa.select(devices.c.settings_record).where(devices.c.device_id == device_id)
    ).scalar_one_or_none()
    return None if found is None else _RECORD.validate_python(found, strict=False)


def put_settings_record(connection: Connection, device_id: DeviceId, record: DeviceSettingsRecord) -> None:
    """Keep it in place of the one before; the event is the errand's."""
    document = _RECORD.dump_python(record, mode="json")
    connection.execute(
        devices.update().where(devices.c.device_id == device_id).values(settings_record=document)
    )
