"""Parts of a run on a device: commands after it, whose output and log excerpt are collected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from shlex import quote

from agents.adb.client import AdbDevice
from agents.adb.shell_v2 import ShellResult
from agents.device.paths import run_folder, work_folder
from agents.device.run.run_control import run_script
from agents.device.run.supervisor import SupervisorExit, supervisor_command, supervisor_exit
from farm.core.errors import DeviceError, DeviceProtocol
from farm.core.runs.evidence import ExitRecord
from farm.phone.adb.decoding import whole_number
from farm.phone.adb.exit_record import exit_record
from farm.phone.adb.shell_sections import output_by_section, section_command, section_head

#: Of each stream and of the log; the lines about placement are at the beginning.
EXCERPT_BYTES = 256 * 1024
_DEADLINE_S = 30.0
#: For a device whose log is slow to read.
_COLLECT_DEADLINE_S = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedPart:
    """The results of a part of a run."""

    exit: ExitRecord
    stdout: str
    stderr: str
    log: str
    #: Its process id; None where the device does not report it.
    pid: int | None


async def start_part(
    device: AdbDevice,
    work_root: str,
    fence: int,
    part: str,
    *,
    argv: Sequence[str],
    env: Mapping[str, str],
    properties: Mapping[str, str],
    timeout_s: float,
) -> None:
    """Start a further command of a run, in the run's folder; one that was started before is left running.

    System properties are set by the part itself. Their previous values are recorded on the device first, from
    where the supervisor restores them when the part ends or the run is cleaned up.

    Raises:
        SessionFenced: the device has seen a higher fence, or has cleaned this one up.
        DeviceError: the device went away, was too slow, or the supervisor did not start.
    """
    folder = part_folder(work_root, fence, part)
    script = quote(f"{folder}/run.sh")
    result = await device.shell(
        f"mkdir -p {quote(folder)} && cat >{script}.new && [ -s {script}.new ] && "
        f"mv -f {script}.new {script} && "
        + supervisor_command(work_root, "start", fence, ceil(timeout_s * 10), part),
        stdin=part_script(work_root, fence, part, argv, env, properties).encode(),
        deadline_s=_DEADLINE_S,
    )
    if (status := supervisor_exit(device, result)) is not SupervisorExit.DONE:
        raise DeviceProtocol(f"{device.serial}: {part} of run {fence} did not start ({status.name})")


async def wait_part(device: AdbDevice, work_root: str, fence: int, part: str, *, timeout_s: float) -> None:
    """Wait until the part has ended.

    Raises:
        DeviceError: it did not end in time, is gone without a record, or the phone went away.
    """
    wait_s = ceil(timeout_s)
    command = supervisor_command(work_root, "wait", fence, wait_s, part)
    status = supervisor_exit(
        device, await device.shell(command, deadline_s=wait_s + _DEADLINE_S, again=False)
    )
    if status is not SupervisorExit.DONE:
        raise DeviceError(f"{device.serial}: {part} of run {fence} failed ({status.name})")


async def collect_part(
    device: AdbDevice, work_root: str, fence: int, part: str, *, log_filters: Sequence[str]
) -> CollectedPart:
    """Return the part's output, and the device's log from its start on, each up to the limit.

    Raises:
        DeviceError: there is no whole exit record, or the phone went away, or was too slow.
    """
    result = await device.shell(
        collect_part_command(part_folder(work_root, fence, part), log_filters), deadline_s=_COLLECT_DEADLINE_S
    )
    sections = output_by_section(result.stdout.decode(errors="replace"))
    if (record := exit_record(sections.get("exit", ""))) is None:
        raise DeviceError(f"{device.serial}: {part} of run {fence} has no exit record")
    return CollectedPart(
        exit=record,
        stdout=_section(result, "stdout"),
        stderr=_section(result, "stderr"),
        log=_section(result, "log"),
        pid=whole_number(sections.get("harness", "").partition(" ")[0]),
    )


def part_folder(work_root: str, fence: int, part: str) -> str:
    """Return the part's folder, below the run's own, so that it is removed with it."""
    return f"{run_folder(work_root, fence)}/{part}"


def part_script(
    work_root: str,
    fence: int,
    part: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    properties: Mapping[str, str],
) -> str:
    """Return the script of a part: record and set properties, record the time, run the command."""
    record = quote(f"{work_folder(work_root)}/properties")
    since = quote(f"{part_folder(work_root, fence, part)}/since")
    save = "; ".join(f'echo {quote(name)}="$(getprop {quote(name)})"' for name in properties)
    set_all = [f"setprop {quote(name)} {quote(value)}" for name, value in properties.items()]
    # An existing record has the values before an interrupted part: keep it.
    remember = f"[ -s {record} ] || {{ {{ {save}; }} >{record}.new && mv -f {record}.new {record}; }}"
    lines = [f"{{ {remember}; }} 2>/dev/null || exit 125", *set_all] if properties else []
    lines.append(f"date '+%m-%d %H:%M:%S.000' >{since}")
    command = run_script(run_folder(work_root, fence), argv, env)
    # In braces, like the command itself: a partly transferred script never runs.
    return "\n".join(["{", *lines, command.rstrip("\n"), "}", ""])


def collect_part_command(folder: str, log_filters: Sequence[str]) -> str:
    """Return the command that prints the results of an ended part."""
    filters = " ".join(quote(pattern) for pattern in log_filters)
    # By time, since clearing the log would take it from others; logcat ends at once with -d.
    log = f'logcat -d -v threadtime -T "$since" {filters} | head -c {EXCERPT_BYTES}'
    commands = {
        "exit": "cat exit",
        "harness": "cat harness",
        "stdout": f"head -c {EXCERPT_BYTES} stdout",
        "stderr": f"head -c {EXCERPT_BYTES} stderr",
        **({"log": f"read -r since <since && {log}"} if log_filters else {}),
    }
    return f"cd {quote(folder)} && {{ {section_command(commands)}; }}"


def _section(result: ShellResult, name: str) -> str:
    """Return a section exactly as printed, blank lines too, without our own last line."""
    _, mark, rest = result.stdout.partition(section_head(name).encode())
    text, _, _ = rest.partition(b"\n@@benchfarm@@ ") if mark else (b"", b"", b"")
    return text.decode(errors="replace")
