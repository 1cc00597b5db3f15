"""Collection of a finished run's results and of the device's condition, in one shell call."""

from dataclasses import dataclass
from datetime import datetime
from shlex import quote

from agents.adb.client import AdbDevice
from agents.adb.shell_v2 import ShellResult
from agents.device.conditions import condition, condition_commands
from agents.device.paths import run_folder
from agents.device.run.cpu_affinity import CORES_FILE
from farm.core.devices.condition import Condition
from farm.core.errors import DeviceError
from farm.core.runs.evidence import ExitRecord
from farm.phone.adb.decoding import whole_number
from farm.phone.adb.shell_output import exit_record, output_by_section, section_command, section_head

#: A stream up to this size is part of the output; a longer one is read as a file, up to the limit.
INLINE_BYTES = 256 * 1024
#: A run of an hour and a half has samples of this size at most; the rest of longer ones is left out.
TRACE_BYTES = 512 * 1024
_CONTROLS = {
    "cores": f'read -r line <{CORES_FILE} && echo "$line"',
    "held": 'while read -r line; do echo "$line"; done <held',
}
_DEADLINE_S = 30.0
_READ_BYTES_PER_S = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedRun:
    """The results of a finished run, output up to the limit."""

    exit: ExitRecord
    stdout: bytes
    stderr: bytes
    stdout_dropped_bytes: int
    stderr_dropped_bytes: int
    #: The condition right after the run; None where it was not requested.
    after: Condition | None
    #: Controls recorded by the run's shell and supervisor: cores, and rows of controls.sh.
    cores: str = ""
    controls: str = ""
    #: The sampler's lines: farm.phone.condition.run_trace.
    trace: str = ""


def collect_command(
    work_root: str, fence: int, *, with_condition: bool = True, with_controls: bool = False
) -> str:
    """Return the command that prints the results of a finished run, for `collect_run`."""
    commands = {
        "exit": 'while read -r line; do echo "$line"; done <exit',
        "sizes": 'echo "$1 $3"',
        **(_CONTROLS if with_controls else {}),
        **(condition_commands(work_root) if with_condition else {}),
        "trace": f"[ ! -s run.trace ] || head -c {TRACE_BYTES} run.trace",
    }
    return (
        f"cd {quote(run_folder(work_root, fence))} && set -- $(wc -c stdout stderr) && {{ "
        f"{section_command(commands)}; "
        f'[ "$1" -gt {INLINE_BYTES} ] || {{ {section_command({"stdout": "cat stdout"})}; }}; '
        # Usually it is empty, and no process is started for it.
        f'[ "$3" = 0 ] || [ "$3" -gt {INLINE_BYTES} ] || cat stderr >&2; }}'
    )


async def collect_run(
    device: AdbDevice,
    fence: int,
    *,
    limit_bytes: int,
    now: datetime,
    output: ShellResult | None = None,
) -> CollectedRun:
    """Return the results of a finished run; `limit_bytes` for each of stdout and stderr.

    The rest is counted. `now` dates the condition after the run; `output` is that of `collect_command`, where
    it was run already.

    Raises:
        DeviceError: there is no whole exit record, or the phone went away, or was too slow.
    """
    if output is None:
        command = collect_command(device.work_root, fence, with_controls=True)
        output = await device.shell(command, deadline_s=_DEADLINE_S)
    head, mark, stdout_section = output.stdout.partition(section_head("stdout").encode())
    sections = output_by_section(head.decode(errors="replace"))
    if (record := exit_record(sections.get("exit", ""))) is None:
        raise DeviceError(f"{device.serial}: run {fence} has no exit record")
    sizes = sections.get("sizes", "").partition(" ")
    stdout_bytes, stderr_bytes = whole_number(sizes[0]) or 0, whole_number(sizes[2]) or 0
    folder = run_folder(device.work_root, fence)
    stdout = stdout_section if mark else await _read(device, f"{folder}/stdout", limit_bytes)
    has_stderr = stderr_bytes <= INLINE_BYTES
    stderr = output.stderr if has_stderr else await _read(device, f"{folder}/stderr", limit_bytes)
    stdout, stderr = stdout[:limit_bytes], stderr[:limit_bytes]
    return CollectedRun(
        exit=record,
        stdout=stdout,
        stderr=stderr,
        stdout_dropped_bytes=max(0, stdout_bytes - len(stdout)),
        stderr_dropped_bytes=max(0, stderr_bytes - len(stderr)),
        after=condition(sections, now) if "boot_id" in sections else None,
        cores=sections.get("cores", "").strip(),
        controls=sections.get("held", ""),
        trace=sections.get("trace", "")[:TRACE_BYTES],
    )


async def _read(device: AdbDevice, path: str, limit_bytes: int) -> bytes:
    deadline_s = _DEADLINE_S + limit_bytes / _READ_BYTES_PER_S
    return await device.read(path, limit_bytes=limit_bytes, deadline_s=deadline_s)
