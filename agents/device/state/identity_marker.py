"""A mark on a phone, by which it is known again on another transport."""

import secrets
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.paths import work_folder

_DEADLINE_S = 10.0


async def read_identity_marker(device: AdbDevice, work_root: str) -> str | None:
    """The phone's mark, made when it has none; None when the phone does not say.

    Two transports that give the same mark end at the same storage. Nothing else proves that: phones of a
    careless maker share a serial number, and virtual phones of one machine share its boot id.

    Raises:
        DeviceError: the phone went away, or was too slow.
    """
    folder = quote(work_folder(work_root))
    # With noclobber one of several writers makes the file. Hard links would do, but Android forbids them.
    command = (
        f"mkdir -p {folder} && cd {folder} || exit 1; "
        f"[ -s mark ] || (set -C; echo {secrets.token_hex(16)} >mark) 2>/dev/null || sleep 1; cat mark"
    )
    result = await device.shell(command, deadline_s=_DEADLINE_S)
    mark = result.stdout.decode(errors="replace").strip()
    return mark if result.exit_code == 0 and mark else None
