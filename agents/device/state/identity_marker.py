"""A random mark on a device, which identifies it on another transport."""

import secrets
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.paths import work_folder

_DEADLINE_S = 10.0


async def read_identity_marker(device: AdbDevice, work_root: str) -> str | None:
    """Return the device's mark, created if missing; None when the device does not answer.

    Two transports with the same mark lead to the same storage. Nothing else proves that: some makers give
    several phones one serial number, and virtual phones of one machine share its boot id.

    Raises:
        DeviceError: the device went away, or was too slow.
    """
    folder = quote(work_folder(work_root))
    # With noclobber only one of several writers creates the file. Android forbids hard links.
    command = (
        f"mkdir -p {folder} && cd {folder} || exit 1; "
        f"[ -s mark ] || (set -C; echo {secrets.token_hex(16)} >mark) 2>/dev/null || sleep 1; cat mark"
    )
    result = await device.shell(command, deadline_s=_DEADLINE_S)
    mark = result.stdout.decode(errors="replace").strip()
    return mark if result.exit_code == 0 and mark else None
