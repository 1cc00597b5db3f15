"""Settings of phones on shelves: what agents found and changed is kept, to be shown and to be put back."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.device import Admin
from farm.core.errors import Conflict
from farm.core.upkeep.device_action import ErrandKind
from farm.core.upkeep.device_settings import (
    FoundSetting,
    SettingToPutBack,
    ShelfRecord,
    settings_to_put_back,
    with_originals,
)
from farm.store.devices.devices import Device
from farm.store.upkeep import device_actions
from farm.store.upkeep.device_actions import Errand
from farm.store.upkeep.device_settings import find_shelf_record, put_shelf_record


def note_settings(
    connection: Connection, errand: Errand, found: Sequence[FoundSetting], *, now: datetime
) -> None:
    """Keep what an errand found, with what settings were before the farm first changed them."""
    if not found:
        return
    earlier = find_shelf_record(connection, errand.device_id)
    settings = with_originals(found, earlier.settings if earlier else ())
    record = ShelfRecord(at=now, kind=errand.kind, asked_by=errand.asked_by, settings=settings)
    put_shelf_record(connection, errand.device_id, record)


def put_back_of(connection: Connection, errand: Errand) -> tuple[SettingToPutBack, ...]:
    """What an undo writes; nothing for any other errand."""
    if errand.kind is not ErrandKind.UNDO_SETTINGS:
        return ()
    record = find_shelf_record(connection, errand.device_id)
    return settings_to_put_back(record.settings) if record else ()


def check_undo(connection: Connection, device: Device) -> None:
    """Refuse an undo of nothing.

    Raises:
        Conflict: the farm has set nothing on the phone.
    """
    record = find_shelf_record(connection, device.device_id)
    if record is None or not settings_to_put_back(record.settings):
        raise Conflict(
            f"the farm has set nothing on {device.name}",
            hint=f"farm device setup {device.name} looks at its settings",
        )


def set_up_where_wanted(connection: Connection, device: Device, host_id: HostId, *, now: datetime) -> None:
    """Have a phone set up that nobody looked at yet, where its host is to do that by itself."""
    if device.admin is not Admin.ACTIVE or find_shelf_record(connection, device.device_id) is not None:
        return
    if device_actions.find_last_errand(connection, device.device_id, ErrandKind.SET_UP) is None:
        device_actions.add_errand(
            connection,
            device.device_id,
            ErrandKind.SET_UP,
            by=f"agent:{host_id}",
            now=now,
            actor=f"agent:{host_id}",
            reason="its host sets up phones by itself (FARM_AGENT_SET_UP_PHONES)",
        )
