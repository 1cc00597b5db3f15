"""The devices of a `farm run`: the named ones, or all active ones."""

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
    """Return selectors of the named devices, else of all active devices that are present.

    Raises:
        SelectorEmpty: the farm has no device with such a name.
        InvalidInput: none was named, and none is active and present.
    """
    if names:
        devices = [
            _known_device(view) for view in farm.devices() if view.device_model and _is_available(view)
        ]
        select_devices([{"device": (name,)} for name in names], devices)
        return [{"device": name} for name in names]
    active = [device for device in farm.devices() if device.admin is Admin.ACTIVE]
    present = [str(device.device_id) for device in active if device.presence is not Presence.ABSENT]
    if not present:
        hint = "plug one in and `farm device admit` it, or start the farm with `farm up --virtual 2`"
        raise InvalidInput("no active device is present", hint=hint)
    if absent := [str(device.device_id) for device in active if device.presence is Presence.ABSENT]:
        print_notice(f"note: left out because absent: {', '.join(absent)}")
    return [{"device_id": present}]


def _is_available(view: "DeviceView") -> bool:
    return view.admin is not Admin.RETIRED


def _known_device(view: "DeviceView") -> KnownDevice:
    """Return the facts of a device that a name can match."""
    facts = DeviceFacts(serialno=view.serial, device_model=view.device_model or "", work_root="")
    return KnownDevice(device_id=view.device_id, host=view.host, facts=facts, label=view.label)
