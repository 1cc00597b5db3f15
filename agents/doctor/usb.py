"""USB devices as the kernel sees them, independent of adb."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.doctor.processes import PROC, ProcessInfo, find_file_users, process_text
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning

#: Class, subclass and protocol of adb's interface (AOSP: adb.h, ADB_CLASS and following).
_ADB_INTERFACE = ("ff", "42", "01")
_SUBJECT = "usb"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsbDevice:
    """A USB device that offers adb."""

    #: Where it is plugged in, e.g. `1-2.3`.
    path: str
    serial: str
    name: str
    node: Path
    #: Whether this user may open it; None when there is no node.
    is_openable: bool | None
    users: tuple[ProcessInfo, ...] = ()


def read_usb_devices(
    sys: Path = Path("/sys"), dev: Path = Path("/dev"), proc: Path = PROC
) -> list[UsbDevice]:
    """Return every USB device with an adb interface."""
    folders = {interface.parent / interface.name.partition(":")[0] for interface in _adb_interfaces(sys)}
    return [_usb_device(folder, dev, proc) for folder in sorted(folders)]


def check_usb(devices: Sequence[UsbDevice], own_server_pid: int | None) -> list[Diagnostic]:
    """Check which devices the agent of this machine can use, and what keeps it from the others."""
    if not devices:
        return [ok(_SUBJECT, "no phone on USB offers adb")]
    return [_check(device, own_server_pid) for device in devices]


def _check(device: UsbDevice, own_server_pid: int | None) -> Diagnostic:
    name = f"{device.serial} ({device.name}, USB {device.path})"
    if device.is_openable is None:
        return problem(
            _SUBJECT, f"{name} has no device node {device.node}", "in a container, pass /dev/bus/usb through"
        )
    if not device.is_openable:
        return problem(
            _SUBJECT,
            f"{name} cannot be opened by this user",
            "install deploy/udev/51-benchfarm.rules, be in the group plugdev, and plug the phone in again",
        )
    others = [user for user in device.users if user.pid != own_server_pid]
    if others:
        return warning(
            _SUBJECT,
            f"{name} is held by {'; '.join(map(process_text, others))}",
            "end that adb server, or have the agent share it (FARM_AGENT_ADB_SERVER=127.0.0.1:PORT)",
        )
    return ok(_SUBJECT, f"{name} can be opened")


def _adb_interfaces(sys: Path) -> Iterator[Path]:
    for interface in sys.glob("bus/usb/devices/*:*"):
        names = ("bInterfaceClass", "bInterfaceSubClass", "bInterfaceProtocol")
        if tuple(_text(interface / name) for name in names) == _ADB_INTERFACE:
            yield interface


def _usb_device(folder: Path, dev: Path, proc: Path) -> UsbDevice:
    bus, number = (int(_text(folder / name) or 0) for name in ("busnum", "devnum"))
    node = dev / "bus" / "usb" / f"{bus:03d}" / f"{number:03d}"
    return UsbDevice(
        path=folder.name,
        serial=_text(folder / "serial") or "no serial number",
        name=" ".join(filter(None, (_text(folder / "manufacturer"), _text(folder / "product")))) or "unnamed",
        node=node,
        is_openable=os.access(node, os.R_OK | os.W_OK) if node.exists() else None,
        users=tuple(find_file_users(node, proc)),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
