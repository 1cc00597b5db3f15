"""USB ports: names of devices by port, and the operator's command that switches power."""

import asyncio
import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

from agents.host.atomic_file import write_file_durably
from farm.core.base.address import host_and_port
from farm.core.errors import FarmError, HostError
from farm.phone.adb.listing import AdbDeviceRow, states

#: adb accepts a device's USB port as its name: `adb -s usb:1-4.2`.
USB_PREFIX = "usb:"
_USB_PATH = re.compile(r"\d{1,4}-\d{1,4}(?:\.\d{1,4}){0,8}", re.ASCII)


def device_names(text: str) -> dict[str, str]:
    """Parse names by port or address from `1-4.2=left,10.0.0.5:5555=right`.

    Raises:
        ValueError: it is not such a list, or names a place or a phone twice.
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
    ports = ((f"{USB_PREFIX}{row.usb_path}", row) for row in rows)
    return states((port if port in names else row.serial, row.state) for port, row in ports)


def find_port(name: str, rows: Iterable[AdbDeviceRow]) -> str | None:
    """Return the USB path of a device, such as `1-4.2`; None when adb does not report it."""
    if name.startswith(USB_PREFIX):
        return name.removeprefix(USB_PREFIX)
    return next((row.usb_path for row in rows if row.serial == name), None)


def _adb_port_name(place: str) -> str:
    path = place.removeprefix(USB_PREFIX)
    if _USB_PATH.fullmatch(path) is not None:
        return f"{USB_PREFIX}{path}"
    if host_and_port(place)[1] == 0:
        raise ValueError(f"{place!r} is neither a USB path, such as 1-4.2, nor HOST:PORT")
    return place


_DEADLINE_S = 30.0
#: The placeholders of a command; all but `action` describe the device.
PLACEHOLDERS = ("serial", "usb_path", "action")


def power_command(text: str) -> tuple[str, ...]:
    """Parse a command line, which is run without a shell.

    Raises:
        ValueError: it is empty, names something else, or does not say what is to be done.
    """
    words = tuple(shlex.split(text))
    values = dict.fromkeys(PLACEHOLDERS, "")
    try:
        for word in words:
            word.format(**values)
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"{text!r} may name {{serial}}, {{usb_path}} and {{action}} only") from error
    if not words or "{action}" not in text:
        raise ValueError(f"{text!r} has no {{action}}, which is `on` or `off`")
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class UsbPort:
    """The USB port of a device."""

    serial: str
    #: `1-2.3`; None where adb does not report it.
    usb_path: str | None


async def switch_power(command: Sequence[str], port: UsbPort, action: str) -> None:
    """Run the command for one device and wait for its end.

    Raises:
        HostError: it cannot be run, fails, takes too long, or wants a USB path that adb does not tell.
    """
    serial, usb_path = port.serial, port.usb_path
    if usb_path is None and any("{usb_path}" in word for word in command):
        raise HostError(f"adb does not report the USB port of {serial}", hint="name {serial} instead")
    words = [word.format(serial=serial, usb_path=usb_path or "", action=action) for word in command]
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        raise HostError(f"the power command cannot be run: {error}") from error
    try:
        async with asyncio.timeout(_DEADLINE_S):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise HostError(f"the power command took longer than {_DEADLINE_S:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        reason = output.decode(errors="replace").strip()[-300:]
        raise HostError(f"the power command ended with {process.returncode}: {reason}")


log = structlog.get_logger(__name__)


async def save_ports(file: Path, ports: Collection[UsbPort]) -> None:
    """Record which ports are off; call it before the first one is."""
    content = json.dumps([asdict(port) for port in ports]).encode()
    await asyncio.to_thread(write_file_durably, file, content)


async def find_ports(file: Path) -> list[UsbPort]:
    """Return the ports that are recorded as off; none where there is no record that can be read."""
    try:
        return [UsbPort(**port) for port in json.loads(await asyncio.to_thread(file.read_bytes))]
    except (OSError, ValueError, TypeError):
        return []


async def restore_ports(file: Path, command: Sequence[str] | None) -> tuple[UsbPort, ...]:
    """Switch on the ports that are recorded as off; return those that stay off. Never raises."""
    ports = await find_ports(file)
    if not ports:
        return ()
    off = tuple([port for port in ports if not await _is_switched_on(port, command)])
    try:
        if off:
            await save_ports(file, off)
        else:
            await asyncio.to_thread(file.unlink)
    except (FarmError, OSError) as error:
        # The record has them all still: the next process switches them on once more.
        log.warning("ports_not_recorded", file=str(file), reason=str(error))
    return off


async def _is_switched_on(port: UsbPort, command: Sequence[str] | None) -> bool:
    if command is None:
        log.warning("port_stays_off", serial=port.serial, reason="no FARM_AGENT_POWER_COMMAND any more")
        return False
    try:
        await switch_power(command, port, "on")
    except FarmError as error:
        log.warning("port_stays_off", serial=port.serial, code=error.code, reason=error.message)
        return False
    return True
