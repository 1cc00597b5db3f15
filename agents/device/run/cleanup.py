"""Clean-up of a device: leftover runs are ended, the cache is emptied."""

from dataclasses import dataclass
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.control.controls import restore_controls
from agents.device.files.cache_eviction import cached_files
from agents.device.paths import cache_folder, incoming_folder
from agents.device.run.gates import restore_screen_state
from agents.device.run.run_control import clean_run
from agents.device.run.supervisor import supervisor_file
from agents.device.state.fencing import read_fence

_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupResult:
    """The space that a clean-up freed."""

    files: int
    freed_bytes: int


async def clean_device(device: AdbDevice, work_root: str) -> CleanupResult:
    """End all leftover runs, then empty the cache; the supervisor stays, which cleans up.

    Call it while no attempt uses the device: every run on it counts as a leftover.

    Raises:
        DeviceError: something lives on, or the phone went away, or was too slow.
    """
    fence = await read_fence(device, work_root)
    if fence > 0:
        await clean_run(device, work_root, fence)
    await restore_controls(device, work_root)
    await restore_screen_state(device, work_root)
    before = await _cached_bytes(device, work_root)
    # In a loop: the names of a large cache would be too long for one command line.
    remove = f'for f in *; do [ "$f" = {supervisor_file().digest} ] || rm -f "$f"; done'
    await device.shell(
        f"rm -f {quote(incoming_folder(work_root))}/*; cd {quote(cache_folder(work_root))} && {remove}",
        deadline_s=_DEADLINE_S,
    )
    after = await _cached_bytes(device, work_root)
    return CleanupResult(
        files=len(before) - len(after),
        freed_bytes=sum(before.values()) - sum(after.values()),
    )


async def _cached_bytes(device: AdbDevice, work_root: str) -> dict[str, int]:
    command = f"cd {quote(cache_folder(work_root))} && stat -c '%Y %s %n' *"
    result = await device.shell(f"{{ {command}; }} 2>/dev/null", deadline_s=_DEADLINE_S)
    files = cached_files(result.stdout.decode(errors="replace"))
    return {file.digest: file.size_bytes for file in files}
