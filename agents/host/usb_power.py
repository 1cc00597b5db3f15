"""The operator's command that switches the power of a USB port, such as uhubctl."""

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from farm.core.errors import HostError

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
