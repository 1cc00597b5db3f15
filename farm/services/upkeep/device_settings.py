"""Settings of phones on shelves: what the farm changed can be put back."""

from sqlalchemy.engine import Connection

from farm.core.errors import Conflict
from farm.core.upkeep.device_settings import settings_to_restore
from farm.store.devices.devices import Device
from farm.store.upkeep.device_settings import find_settings_record


def check_restore(connection: Connection, device: Device) -> None:
    """Refuse an undo of nothing.

    Raises:
        Conflict: the farm has set nothing on the phone.
    """
    record = find_settings_record(connection, device.device_id)
    if record is None or not settings_to_restore(record.settings):
        raise Conflict(
            f"the farm has set nothing on {device.name}",
            hint=f"farm device provision {device.name} looks at its settings",
        )
