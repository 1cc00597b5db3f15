"""Probe of a device that adb lists: its answer, and what identifies it: its mark and its fence."""

import secrets
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.paths import work_folder
from farm.core.base.bounds import MAX_FENCE
from farm.core.devices.device import Presence
from farm.core.errors import DeviceError
from farm.phone.adb.decoding import whole_number

_EXIT_CODE = 7
#: A device side without getprop is not Android, and has nothing to boot.
_PROBE = (
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
    command = _PROBE.format(nonce=nonce, code=_EXIT_CODE)
    try:
        result = await device.shell(command, deadline_s=deadline_s)
    except DeviceError:
        return Presence.OFFLINE
    answer = result.stdout.split()
    if result.exit_code != _EXIT_CODE or nonce.encode() not in answer:
        return Presence.OFFLINE
    return Presence.ONLINE if answer[-1] == b"1" else Presence.BOOTING


_DEADLINE_S = 10.0


async def read_identity_marker(device: AdbDevice) -> str | None:
    """Return the device's mark, created if missing; None when the device does not answer.

    Two transports with the same mark lead to the same storage. Nothing else proves that: some makers give
    several phones one serial number, and virtual phones of one machine share its boot id.
    """
    folder = quote(work_folder(device.work_root))
    # With noclobber only one of several writers creates the file. Android forbids hard links.
    command = (
        f"mkdir -p {folder} && cd {folder} || exit 1; "
        f"[ -s mark ] || (set -C; echo {secrets.token_hex(16)} >mark) 2>/dev/null || sleep 1; cat mark"
    )
    result = await device.shell(command, deadline_s=_DEADLINE_S)
    mark = result.text.strip()
    return mark if result.exit_code == 0 and mark else None


async def read_fence(device: AdbDevice) -> int:
    """Return the highest fence a run was started or cleaned up with; 0 on a new device.

    At most `MAX_FENCE`: a run can write there what it likes, and the farm judges what is plausible.
    """
    folder = quote(work_folder(device.work_root))
    result = await device.shell(f"cat {folder}/fence {folder}/cleaned 2>/dev/null", deadline_s=_DEADLINE_S)
    words = result.text.split()
    return min(max((0, *(whole_number(word) or 0 for word in words))), MAX_FENCE)
