"""The highest fence that a device has seen, which outlives any agent."""

from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.paths import work_folder
from farm.phone.adb.decoding import whole_number

_DEADLINE_S = 10.0


async def read_fence(device: AdbDevice, work_root: str) -> int:
    """Return the highest fence a run was started or cleaned up with; 0 on a new device.

    Raises:
        DeviceError: the device went away, or was too slow.
    """
    folder = quote(work_folder(work_root))
    result = await device.shell(f"cat {folder}/fence {folder}/cleaned 2>/dev/null", deadline_s=_DEADLINE_S)
    words = result.stdout.decode(errors="replace").split()
    return max((whole_number(word) or 0 for word in words), default=0)
