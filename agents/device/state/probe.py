"""An end-to-end probe of a device that adb lists."""

import secrets

from agents.adb.client import AdbDevice
from farm.core.devices.device import Presence
from farm.core.errors import DeviceError

_EXIT_CODE = 7
#: A device side without getprop is not Android, and has nothing to boot.
_COMMAND = (
    "echo {nonce}; "
    "if command -v getprop >/dev/null; then getprop sys.boot_completed; else echo 1; fi; "
    "exit {code}"
)


async def probe(device: AdbDevice, *, deadline_s: float = 10.0) -> Presence:
    """Echo a nonce over shell v2, return an exit code, ask whether Android is up.

    Returns ONLINE, BOOTING or OFFLINE; an error of the device is a result here.

    Raises:
        AdbServerDown: our server is to blame, so that nothing is known of the phone.
    """
    nonce = secrets.token_hex(8)
    command = _COMMAND.format(nonce=nonce, code=_EXIT_CODE)
    try:
        result = await device.shell(command, deadline_s=deadline_s)
    except DeviceError:
        return Presence.OFFLINE
    answer = result.stdout.split()
    if result.exit_code != _EXIT_CODE or nonce.encode() not in answer:
        return Presence.OFFLINE
    return Presence.ONLINE if answer[-1] == b"1" else Presence.BOOTING
