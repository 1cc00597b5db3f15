"""Names for devices by USB port or address, for devices without unique serial numbers."""

import re
from collections.abc import Iterable, Mapping

from farm.core.base.address import host_and_port
from farm.phone.adb.listing import AdbDeviceRow, states

#: adb accepts a device's USB port as its name: `adb -s usb:1-4.2`.
USB_PREFIX = "usb:"
_USB_PATH = re.compile(r"\d{1,4}-\d{1,4}(?:\.\d{1,4}){0,8}", re.ASCII)


def device_names(text: str) -> dict[str, str]:
    """Parse names by port or address from `1-4.2=left,10.0.0.5:5555=right`.

    Raises:
        ValueError: it is no such list, or names a place or a phone twice.
    """
    names: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        place, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise ValueError(f"{part!r} is not PLACE=NAME, such as 1-4.2=bench-left")
        names[_adb_port_name(place)] = name
    if len(names) != len(set(names.values())) or len(names) != text.count("="):
        raise ValueError("each place has one name, and each name one place")
    return names


def states_by_port(rows: Iterable[AdbDeviceRow], names: Mapping[str, str]) -> dict[str, str]:
    """Return adb states by the name adb is called with: a named port, or else the serial."""
    return states((_port_or_serial(row, names), row.state) for row in rows)


def find_port(name: str, rows: Iterable[AdbDeviceRow]) -> str | None:
    """Return the USB path of a device, such as `1-4.2`; None when adb does not report it."""
    if name.startswith(USB_PREFIX):
        return name.removeprefix(USB_PREFIX)
    return next((row.usb_path for row in rows if row.serial == name), None)


def _port_or_serial(row: AdbDeviceRow, names: Mapping[str, str]) -> str:
    port = f"{USB_PREFIX}{row.usb_path}"
    return port if port in names else row.serial


def _adb_port_name(place: str) -> str:
    path = place.removeprefix(USB_PREFIX)
    if _USB_PATH.fullmatch(path) is not None:
        return f"{USB_PREFIX}{path}"
    if host_and_port(place)[1] == 0:
        raise ValueError(f"{place!r} is neither a USB path, such as 1-4.2, nor HOST:PORT")
    return place
