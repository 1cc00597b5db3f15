"""Control of runs on a device by the supervisor script: started detached, waited for silently, cleaned up."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from math import ceil
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory, gettempdir

from agents.adb.client import AdbDevice
from agents.adb.shell_v2 import ShellResult
from agents.device.device_cache import CacheResult, ensure_cached
from agents.device.paths import cache_folder, cache_path, run_folder, work_folder
from agents.device.run.cpu_affinity import affinity_script
from agents.host.atomic_file import translate_disk_errors
from farm.core.base.ids import Digest, digest_of
from farm.core.errors import (
    AdbServerDown,
    DeviceError,
    DeviceOffline,
    DeviceProtocol,
    DeviceTimeout,
    SessionFenced,
)
from farm.core.runs.plan import PlanFile

#: The supervisor: one file on the device, of three here.
SUPERVISOR_SCRIPT = b"\n".join(
    Path(__file__).with_name(part).read_bytes() for part in ("processes.sh", "sampler.sh", "supervisor.sh")
)
#: The script as one more file of every plan.
SUPERVISOR_FILE = PlanFile(
    name="supervisor", digest=digest_of(SUPERVISOR_SCRIPT), size_bytes=len(SUPERVISOR_SCRIPT)
)


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


async def ensure_supervisor(device: AdbDevice) -> CacheResult:
    """Ensure that the script is in the device's cache; raises as `ensure_cached`."""
    with translate_disk_errors(Path(gettempdir(), "supervisor.sh")), TemporaryDirectory() as folder:

        async def local_path(_: Digest) -> Path:
            path = Path(folder, "supervisor.sh")
            await asyncio.to_thread(path.write_bytes, SUPERVISOR_SCRIPT)
            return path

        return await ensure_cached(device, [SUPERVISOR_FILE], local_path)


#: The first pause between samples; it doubles in long runs.
SAMPLING_PAUSE_S = 0.5


def supervisor_command(
    work_root: str, command: str, fence: int, argument: int = 0, part: str = "", *, sampling: bool = False
) -> str:
    """Return a command line for the device's shell, which sources the script: one process less.

    `part` names a further command of the run, in a folder of its own below the run's. A run that starts with
    `sampling` is sampled to its end.
    """
    script = quote(cache_path(work_root, SUPERVISOR_FILE.digest))
    pause = SAMPLING_PAUSE_S if sampling else ""
    words = f"{command} {quote(work_folder(work_root))} {fence} {argument} {quote(part)} {pause}"
    return f"(BENCHFARM_SELF={script}; set -- {words}; . {script})"


def supervisor_exit(device: AdbDevice, result: ShellResult) -> SupervisorExit:
    """Return the script's exit code.

    Raises:
        SessionFenced: the device was handed to a newer attempt.
        DeviceNotClean: the clean-up left something.
        DeviceProtocol: the script did not run, or failed in a way it does not know.
    """
    message = result.message
    match result.exit_code:
        case SupervisorExit.REFUSED:
            raise SessionFenced(f"{device.serial}: {message}")
        case SupervisorExit.UNCLEAN:
            raise DeviceNotClean(f"{device.serial}: {message}")
        case SupervisorExit.DONE | SupervisorExit.MISSING | SupervisorExit.RUNNING | SupervisorExit.LOST:
            return SupervisorExit(result.exit_code)
        case _:
            raise DeviceProtocol(f"{device.serial}: the supervisor failed: {message}")


_DEADLINE_S = 30.0
#: For the follow-up command, after its first output: the run's end is known by then, and a hanging service of
#: the device costs no more than this.
FOLLOW_UP_S = 20.0
#: Beyond the wait itself.
_FOLLOW_UP_MARGIN_S = 2.0
#: The script waits twice two seconds for processes to die; scans of a slow device take more time.
_CLEAN_DEADLINE_S = 60.0
#: Between attempts to reach a device that went away during its run.
_RECONNECT_S = 1.0
#: A failure slower than this means that the device was there.
_PROBE_INTERVAL_S = 5.0


class RunStatus(StrEnum):
    """The status of a run on its device."""

    RUNNING = "running"
    #: It has an exit record.
    FINISHED = "finished"
    #: It was started, and has neither a process nor an exit record: it was killed, or ended by a reboot.
    LOST = "lost"
    #: The device has nothing of it: it was never started, or was cleaned up.
    UNKNOWN = "unknown"


class RunLost(DeviceError):
    """The run left neither a process nor an exit record."""

    code = "device.run_gone"
    default_hint = "something on the device killed its supervisor: `adb logcat -b crash,events` may say what"
    #: True if the device was unreachable during the run.
    was_away = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWait:
    """The end of a run that was waited for."""

    #: The output at its end.
    output: ShellResult
    #: Time the device was unreachable; the run continued.
    away_s: float


async def start_run(
    device: AdbDevice,
    fence: int,
    argv: Sequence[str],
    env: Mapping[str, str],
    timeout_s: float,
    files: Sequence[PlanFile] = (),
    *,
    cores: Sequence[int] = (),
    sampling: bool = False,
    checked: bool = False,
) -> None:
    """Start a command, detached; a run that was started before is left running.

    Its current folder is the run's own, with links to its cached files that have a path. It is killed, with
    all its children, after `timeout_s`, and bound to `cores`, if any; with `sampling` the device samples
    itself. `checked` says that the supervisor was
    just verified on this device.

    Raises:
        SessionFenced: the device has seen a higher fence, or has cleaned this one up.
        DeviceError: the device went away, was too slow, or the supervisor did not start.
    """
    if not checked:
        await ensure_supervisor(device)
    folder = run_folder(device.work_root, fence)
    script = quote(f"{folder}/run.sh")
    links = f"cd {quote(folder)} && {link_command(device.work_root)} && " if linked_files(files) else ""
    result = await device.shell(
        f"mkdir -p {quote(folder)} && {links}cat >{script}.new && [ -s {script}.new ] && "
        f"mv -f {script}.new {script} && "
        + supervisor_command(device.work_root, "start", fence, ceil(timeout_s * 10), sampling=sampling),
        stdin=((link_lines(files) if links else "") + run_script(folder, argv, env, cores)).encode(),
        deadline_s=_DEADLINE_S,
    )
    if (status := supervisor_exit(device, result)) is not SupervisorExit.DONE:
        raise DeviceProtocol(f"{device.serial}: run {fence} did not start ({status.name})")


def run_script(folder: str, argv: Sequence[str], env: Mapping[str, str], cores: Sequence[int] = ()) -> str:
    """Return the script that the supervisor runs: the command, in place of the shell that reads it.

    A connection that breaks during the transfer may leave a part of the script on the device. A shell reads a
    list in braces to its end before it runs it, so that a part of a command never runs.
    """
    exports = [f"export {name}={quote(value)}" for name, value in env.items()]
    command = " ".join(quote(word) for word in argv)
    enter = f"cd {quote(folder)} || exit 126"
    return "\n".join(["{", enter, *affinity_script(cores), *exports, f"exec {command}", "}", ""])


async def wait_run(
    device: AdbDevice, fence: int, *, deadline_s: float, grace_s: float = 90.0, then: str = ""
) -> RunWait:
    """Wait for the exit record on one silent stream; nothing else uses the device until then.

    A device that goes away is retried until it was away for `grace_s`; its run continues without us.

    The same shell runs `then` as soon as the run has ended, and its output is returned; it gets a little more
    time than the run.

    Raises:
        DeviceTimeout: the run, the phone, or `then` did not come to an end within `deadline_s`, or `then` not
            soon after the run's end.
        DeviceOffline, AdbServerDown, DeviceProtocol: the device stayed away longer than the grace period.
        RunLost: its supervisor was killed, or the phone has rebooted.
    """
    clock, absence = asyncio.get_running_loop().time, _Absence()
    end_s = clock() + deadline_s
    while (remaining_s := end_s - clock()) > 0:
        asked_s = clock()
        try:
            status, result = await _wait_once(device, fence, remaining_s, then)
        except (DeviceOffline, AdbServerDown, DeviceProtocol):
            if absence.lasts_s(asked_s, clock()) >= grace_s:
                raise
            await asyncio.sleep(_RECONNECT_S)
            continue
        if status is RunStatus.FINISHED:
            return RunWait(output=result, away_s=absence.total_s)
        if status in (RunStatus.LOST, RunStatus.UNKNOWN):
            lost = RunLost(f"{device.serial}: run {fence} is gone without an exit record")
            lost.was_away = absence.total_s > 0
            raise lost
    raise DeviceTimeout(f"{device.serial}: run {fence} did not end within {deadline_s:g} s")


@dataclass(slots=True, kw_only=True)
class _Absence:
    """The time a device was away while a run was waited for."""

    since_s: float | None = None
    #: In total, up to the next retry.
    total_s: float = 0.0

    def lasts_s(self, asked_s: float, failed_s: float) -> float:
        """Record a failed call; return the length of the current absence."""
        was_there = self.since_s is None or failed_s - asked_s > _PROBE_INTERVAL_S
        if self.since_s is None or was_there:
            self.since_s = failed_s
        self.total_s += _RECONNECT_S if was_there else failed_s - asked_s + _RECONNECT_S
        return failed_s - self.since_s


async def run_status(device: AdbDevice, fence: int) -> RunStatus:
    """Return the status of a run, for an agent that was away itself."""
    await ensure_supervisor(device)
    command = supervisor_command(device.work_root, "wait", fence, 0)
    return _status(device, await device.shell(command, deadline_s=_DEADLINE_S))


async def clean_run(device: AdbDevice, fence: int, *, checked: bool = False, then: str = "") -> ShellResult:
    """End everything that runs up to `fence` ever started, and remove their folders.

    Returns only when the device has checked again and found nothing; none of these runs can start any more.

    `checked` says that the supervisor was verified on this device for one of them; the same shell runs `then`
    once the device is clean, and its output is returned.

    Raises:
        DeviceError: something lives on, or the phone went away, or was too slow.
    """
    if not checked:
        await ensure_supervisor(device)
    command = supervisor_command(device.work_root, "clean", fence)
    result = await device.shell(
        f"{command} && {{ {then}; true; }}" if then else command, deadline_s=_CLEAN_DEADLINE_S
    )
    supervisor_exit(device, result)
    return result


async def reset_fence(device: AdbDevice, fence: int) -> None:
    """End everything that any run started, then give the device this token, though it has a higher one.

    For a device whose token cannot be true: no run up to this one starts there any more.

    Raises:
        DeviceError: something lives on, or the phone went away, or was too slow.
    """
    await ensure_supervisor(device)
    command = supervisor_command(device.work_root, "reset", fence)
    supervisor_exit(device, await device.shell(command, deadline_s=_CLEAN_DEADLINE_S))


async def _wait_once(
    device: AdbDevice, fence: int, remaining_s: float, then: str
) -> tuple[RunStatus, ShellResult]:
    command = supervisor_command(device.work_root, "wait", fence, ceil(remaining_s))
    if then:
        command = f'{command}; code=$?; [ "$code" != 0 ] || {{ {then}; }}; exit "$code"'
    result = await device.shell(
        command,
        deadline_s=remaining_s + (_FOLLOW_UP_MARGIN_S if then else _DEADLINE_S),
        talk_s=FOLLOW_UP_S if then else None,
        # The caller handles a connection that ends during a run.
        again=False,
    )
    return _status(device, result), result


def _status(device: AdbDevice, result: ShellResult) -> RunStatus:
    match supervisor_exit(device, result):
        case SupervisorExit.DONE:
            return RunStatus.FINISHED
        case SupervisorExit.RUNNING:
            return RunStatus.RUNNING
        case SupervisorExit.LOST:
            return RunStatus.LOST
        case _:
            return RunStatus.UNKNOWN


# Links, not copies: a run writes nothing large, and shared files exist once on the device. Hard links would
# let a program find itself in the folder (/proc/self/exe, $ORIGIN), but Android's policy gives adb's shell
# none: AOSP's `create_file_perms` has no `link`.
def linked_files(files: Sequence[PlanFile]) -> list[PlanFile]:
    """Return the files of a plan that the run's folder links."""
    return [file for file in files if file.path]


def link_lines(files: Sequence[PlanFile]) -> str:
    """Return the input of `link_command`: a digest and a path a line, and an empty line at the end."""
    return "".join(f"{file.digest} {file.path}\n" for file in linked_files(files)) + "\n"


def link_command(work_root: str) -> str:
    """Return a command that creates the links its input names; existing ones are kept.

    It leaves the rest of its input to the next command: a shell's `read` reads no byte beyond the line from a
    pipe.
    """
    return (
        'while read -r digest path && [ -n "$digest" ]; do '
        'case $path in */*) [ -d "./${path%/*}" ] || mkdir -p "./${path%/*}" || exit ;; esac; '
        f'[ -L "./$path" ] || ln -s {quote(cache_folder(work_root))}/"$digest" "./$path" || exit; done'
    )
