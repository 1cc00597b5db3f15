"""The supervisor script as the agent sees it: a file in the device's cache, commands, exit codes."""

import asyncio
from enum import IntEnum
from functools import cache
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

from agents.adb.client import AdbDevice
from agents.adb.shell_v2 import ShellResult
from agents.device.files.device_cache import CacheResult, ensure_cached
from agents.device.paths import cache_path, work_folder
from farm.core.base.ids import Digest, digest_of
from farm.core.errors import DeviceError, DeviceProtocol, SessionFenced
from farm.core.runs.plan import PlanFile

#: Concatenated, they are the file on the device.
_PARTS = ("processes.sh", "supervisor.sh")


class SupervisorExit(IntEnum):
    """The script's exit codes."""

    DONE = 0
    #: The device's fence is higher, or the run was cleaned up already.
    REFUSED = 10
    #: The run does not exist.
    MISSING = 11
    RUNNING = 12
    #: It was started, has no exit record, and its supervisor is gone.
    LOST = 13
    #: Processes or folders are left after the clean-up.
    UNCLEAN = 14


class DeviceNotClean(DeviceError):
    """Something of a run resists every attempt to end or remove it."""

    code = "device.not_clean"
    default_hint = "reboot the phone"


@cache
def supervisor_script() -> bytes:
    """Return the whole script."""
    return b"\n".join(Path(__file__).with_name(part).read_bytes() for part in _PARTS)


@cache
def supervisor_file() -> PlanFile:
    """Return the script as one more file of every plan."""
    content = supervisor_script()
    return PlanFile(name="supervisor", digest=digest_of(content), size_bytes=len(content))


async def ensure_supervisor(device: AdbDevice, work_root: str) -> CacheResult:
    """Ensure that the script is in the device's cache; raises as `ensure_cached`."""
    with TemporaryDirectory() as folder:

        async def local_path(_: Digest) -> Path:
            path = Path(folder, "supervisor.sh")
            await asyncio.to_thread(path.write_bytes, supervisor_script())
            return path

        return await ensure_cached(device, work_root, [supervisor_file()], local_path)


def supervisor_command(work_root: str, command: str, fence: int, argument: int = 0, part: str = "") -> str:
    """Return a command line for the device's shell, which sources the script: one process less.

    `part` names a further command of the run, in a folder of its own below the run's.
    """
    script = quote(cache_path(work_root, supervisor_file().digest))
    words = f"{command} {quote(work_folder(work_root))} {fence} {argument} {quote(part)}"
    return f"(BENCHFARM_SELF={script}; set -- {words}; . {script})"


def supervisor_exit(device: AdbDevice, result: ShellResult) -> SupervisorExit:
    """Return the script's exit code.

    Raises:
        SessionFenced: the device was handed to a newer attempt.
        DeviceNotClean: the clean-up left something.
        DeviceProtocol: the script did not run, or failed in a way it does not know.
    """
    message = result.stderr.decode(errors="replace").strip() or f"exit code {result.exit_code}"
    match result.exit_code:
        case SupervisorExit.REFUSED:
            raise SessionFenced(f"{device.serial}: {message}")
        case SupervisorExit.UNCLEAN:
            raise DeviceNotClean(f"{device.serial}: {message}")
        case SupervisorExit.DONE | SupervisorExit.MISSING | SupervisorExit.RUNNING | SupervisorExit.LOST:
            return SupervisorExit(result.exit_code)
        case _:
            raise DeviceProtocol(f"{device.serial}: the supervisor failed: {message}")
