"""Settings of phones on shelves: what agents found and changed is kept, to be shown and to be put back."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.device import Admin
from farm.core.errors import Conflict
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import (
    DeviceSettingsRecord,
    SettingRestore,
    SettingResult,
    keep_originals,
    settings_to_restore,
)
from farm.store.devices.devices import Device
from farm.store.upkeep import device_actions
from farm.store.upkeep.device_actions import DeviceAction
from farm.store.upkeep.device_settings import find_settings_record, put_settings_record


def record_settings(
    connection: Connection, device_action: DeviceAction, found: Sequence[SettingResult], *, now: datetime
) -> None:
    """Keep what an errand found, with what settings were before the farm first changed them."""
    if not found:
        return
    earlier = find_settings_record(connection, device_action.device_id)
    settings = keep_originals(found, earlier.settings if earlier else ())
    record = DeviceSettingsRecord(
        at=now, kind=device_action.kind, requested_by=device_action.requested_by, settings=settings
    )
    put_settings_record(connection, device_action.device_id, record)


def settings_to_restore_of(connection: Connection, device_action: DeviceAction) -> tuple[SettingRestore, ...]:
    """What an undo writes; nothing for any other errand."""
    if device_action.kind is not DeviceActionKind.RESTORE_SETTINGS:
        return ()
    record = find_settings_record(connection, device_action.device_id)
    return settings_to_restore(record.settings) if record else ()


def check_restore(connection: Connection, device: Device) -> None:
    """Refuse an undo of nothing.

    Raises:
        Conflict: the farm has set nothing on the phone.
    """
    record = find_settings_record(connection, device.device_id)
    if record is None or not settings_to_restore(record.settings):
        raise Conflict(
            f"the farm has set nothing on {device.name}",
            hint=f"farm device setup {device.name} looks at its settings",
        )


def provision_where_wanted(connection: Connection, device: Device, host_id: HostId, *, now: datetime) -> None:
    """Have a phone set up that nobody looked at yet, where its host is to do that by itself."""
    if device.admin is not Admin.ACTIVE or find_settings_record(connection, device.device_id) is not None:
        return
    if (
        device_actions.find_last_device_action(connection, device.device_id, DeviceActionKind.PROVISION)
        is None
    ):
        device_actions.add_device_action(
            connection,
            device.device_id,
            DeviceActionKind.PROVISION,
            by=f"agent:{host_id}",
            now=now,
            actor=f"agent:{host_id}",
            reason="its host sets up phones by itself (FARM_AGENT_PROVISION_DEVICES)",
        )
