"""The phones of a `farm run`: those that were named, or all that may work."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farm.cli.shell.output import print_notice
from farm.core.devices.device import Admin, DeviceFacts, Presence
from farm.core.devices.selector import KnownDevice, select_devices
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.devices import DeviceView


def run_selectors(farm: "FarmClient", names: Sequence[str]) -> list[dict[str, object]]:
    """What was named; else every phone that is there and that the operator lets work.

    Raises:
        SelectorEmpty: the farm has no phone of such a name.
        InvalidInput: none was named, and none may work.
    """
    if names:
        known = [_known_device(view) for view in farm.devices() if view.device_model and _is_available(view)]
        select_devices([{"device": (name,)} for name in names], known)
        return [{"device": name} for name in names]
    active = [device for device in farm.devices() if device.admin is Admin.ACTIVE]
    there = [str(device.device_id) for device in active if device.presence is not Presence.ABSENT]
    if not there:
        hint = "plug one in and `farm device admit` it, or start the farm with `farm up --virtual 2`"
        raise InvalidInput("no phone is there that may work", hint=hint)
    if gone := [str(device.device_id) for device in active if device.presence is Presence.ABSENT]:
        print_notice(f"note: left out, because they are not there: {', '.join(gone)}")
    return [{"device_id": there}]


def _is_available(view: "DeviceView") -> bool:
    return view.admin is not Admin.RETIRED


def _known_device(view: "DeviceView") -> KnownDevice:
    """As much of a phone as a name can mean."""
    facts = DeviceFacts(serialno=view.serial, device_model=view.device_model or "", work_root="")
    return KnownDevice(device_id=view.device_id, host=view.host, facts=facts, label=view.label)
