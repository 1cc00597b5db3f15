"""Runs on a phone: started detached, waited for in silence, collected, cleaned up."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.layout import run_folder
from agents.device.links import link_command, link_lines, linked
from agents.device.supervisor import Said, answer, ensure_supervisor, supervisor_command
from farm.core.errors import AdbServerDown, DeviceError, DeviceOffline, DeviceProtocol, DeviceTimeout
from farm.core.evidence import ExitRecord
from farm.core.plan import PlanFile
from farm.phone.exit_record import exit_record
from farm.phone.sections import output_by_section, section_command
from farm.phone.text import whole_number

_DEADLINE_S = 30.0
#: The script's own patience with what will not die is twice two seconds; scans of a slow phone come on top.
_CLEAN_DEADLINE_S = 60.0
#: Between attempts to reach a phone that went away during its run.
_RECONNECT_S = 0.5
#: An answer slower than this means that the phone was there.
_REACHED_S = 5.0
_READ_BYTES_PER_S = 1024 * 1024


class RunStatus(StrEnum):
    """What has become of a run."""

    RUNNING = "running"
    #: There is an exit record.
    FINISHED = "finished"
    #: Nothing runs and nothing was recorded: never started, cleaned up, or cut off by a reboot.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedRun:
    """What a finished run left, output up to the limit."""

    exit: ExitRecord
    stdout: bytes
    stderr: bytes
    stdout_dropped_bytes: int
    stderr_dropped_bytes: int


async def start_run(
    device: AdbDevice,
    work_root: str,
    fence: int,
    argv: Sequence[str],
    env: Mapping[str, str],
    timeout_s: float,
    files: Sequence[PlanFile] = (),
) -> None:
    """Start a command, detached; a run that was started before is left as it is.

    Its current folder is the run's own, in which those of its cached files that have a path are linked. It is
    killed, with all it started, when `timeout_s` are over.

    Raises:
        SessionFenced: the phone has seen a higher fence, or has cleaned this one up.
        DeviceError: the phone went away, was too slow, or the supervisor did not start.
    """
    await ensure_supervisor(device, work_root)
    folder = run_folder(work_root, fence)
    script = quote(f"{folder}/run.sh")
    links = f"cd {quote(folder)} && {link_command(work_root)} && " if linked(files) else ""
    result = await device.shell(
        f"mkdir -p {quote(folder)} && {links}cat >{script}.new && mv -f {script}.new {script} && "
        + supervisor_command(work_root, "start", fence, ceil(timeout_s * 10)),
        stdin=((link_lines(files) if links else "") + run_script(folder, argv, env)).encode(),
        deadline_s=_DEADLINE_S,
    )
    if (said := answer(device, result)) is not Said.DONE:
        raise DeviceProtocol(f"{device.serial}: run {fence} did not start ({said.name})")


def run_script(folder: str, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """What the supervisor runs: the command, in place of the shell that reads this."""
    exports = [f"export {name}={quote(value)}" for name, value in env.items()]
    command = " ".join(quote(word) for word in argv)
    return "\n".join([f"cd {quote(folder)} || exit 126", *exports, f"exec {command}", ""])


async def wait_run(
    device: AdbDevice, work_root: str, fence: int, *, deadline_s: float, grace_s: float = 90.0
) -> None:
    """Wait for the exit record on one silent stream; nothing else talks to the phone meanwhile.

    A phone that goes away is tried again until it was away for `grace_s`; its run goes on without us.

    Raises:
        DeviceTimeout: the run, or the phone, did not come to an end within `deadline_s`.
        DeviceOffline, AdbServerDown, DeviceProtocol: the phone stayed away longer than the grace period.
        DeviceError: the run is gone without a record: its supervisor was killed, or the phone has rebooted.
    """
    clock = asyncio.get_running_loop().time
    end_s, away_since_s = clock() + deadline_s, None
    while (left_s := end_s - clock()) > 0:
        asked_s = clock()
        try:
            status = await _wait_once(device, work_root, fence, left_s)
        except (DeviceOffline, AdbServerDown, DeviceProtocol):
            if away_since_s is None or clock() - asked_s > _REACHED_S:
                away_since_s = clock()
            if clock() - away_since_s >= grace_s:
                raise
            await asyncio.sleep(_RECONNECT_S)
            continue
        if status is RunStatus.FINISHED:
            return
        if status is RunStatus.UNKNOWN:
            raise DeviceError(f"{device.serial}: run {fence} is gone without an exit record")
    raise DeviceTimeout(f"{device.serial}: run {fence} did not end within {deadline_s:g} s")


async def run_status(device: AdbDevice, work_root: str, fence: int) -> RunStatus:
    """What has become of a run, for an agent that was away itself.

    Raises:
        DeviceError: the phone went away, or was too slow.
    """
    await ensure_supervisor(device, work_root)
    return await _ask(device, work_root, fence, seconds=0, deadline_s=_DEADLINE_S)


async def collect_run(device: AdbDevice, work_root: str, fence: int, *, limit_bytes: int) -> CollectedRun:
    """Read what a finished run left; `limit_bytes` for each of stdout and stderr.

    Raises:
        DeviceError: there is no whole exit record, or the phone went away, or was too slow.
    """
    folder = run_folder(work_root, fence)
    commands = {"exit": "cat exit", "stdout": "wc -c <stdout", "stderr": "wc -c <stderr"}
    command = f"cd {quote(folder)} && {{ {section_command(commands)}; }}"
    result = await device.shell(command, deadline_s=_DEADLINE_S)
    said = output_by_section(result.stdout.decode(errors="replace"))
    if (record := exit_record(said.get("exit", ""))) is None:
        raise DeviceError(f"{device.serial}: run {fence} has no exit record")
    stdout, stderr = [
        await device.read(
            f"{folder}/{stream}",
            limit_bytes=limit_bytes,
            deadline_s=_DEADLINE_S + limit_bytes / _READ_BYTES_PER_S,
        )
        for stream in ("stdout", "stderr")
    ]
    return CollectedRun(
        exit=record,
        stdout=stdout,
        stderr=stderr,
        stdout_dropped_bytes=(whole_number(said.get("stdout", "")) or 0) - len(stdout),
        stderr_dropped_bytes=(whole_number(said.get("stderr", "")) or 0) - len(stderr),
    )


async def clean_run(device: AdbDevice, work_root: str, fence: int) -> None:
    """End everything that runs up to `fence` ever started, and remove their folders.

    Returns only when the phone has looked again and found nothing; none of these runs can start any more.

    Raises:
        DeviceError: something lives on, or the phone went away, or was too slow.
    """
    await ensure_supervisor(device, work_root)
    command = supervisor_command(work_root, "clean", fence)
    answer(device, await device.shell(command, deadline_s=_CLEAN_DEADLINE_S))


async def _wait_once(device: AdbDevice, work_root: str, fence: int, left_s: float) -> RunStatus:
    return await _ask(device, work_root, fence, seconds=ceil(left_s), deadline_s=left_s + _DEADLINE_S)


async def _ask(
    device: AdbDevice, work_root: str, fence: int, *, seconds: int, deadline_s: float
) -> RunStatus:
    command = supervisor_command(work_root, "wait", fence, seconds)
    match answer(device, await device.shell(command, deadline_s=deadline_s)):
        case Said.DONE:
            return RunStatus.FINISHED
        case Said.RUNNING:
            return RunStatus.RUNNING
        case _:
            return RunStatus.UNKNOWN
