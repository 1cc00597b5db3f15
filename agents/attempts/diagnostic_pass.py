"""Uncounted diagnostic passes after a run; a failed pass never fails the run.

A pass is a part of its run: a further command in a folder below the run's, removed with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from shlex import quote
from string import Template

import structlog

from agents.adb.client import AdbDevice
from agents.adb.shell_v2 import ShellResult
from agents.device.paths import cache_path, run_folder, work_folder
from agents.device.run.run_control import SupervisorExit, run_script, supervisor_command, supervisor_exit
from agents.devices.monitor import OnlineDevice
from agents.outbox.attempt_journal import JournalRecord
from farm.core.errors import DeviceError, DeviceProtocol, FarmError, HostError
from farm.core.runs.evidence import Evidence, PassEvidence, RunError
from farm.core.runs.plan import DiagnosticPass, placeholder_values
from farm.phone.adb.decoding import whole_number
from farm.phone.adb.shell_output import exit_record, output_by_section, section_command, section_head

log = structlog.get_logger(__name__)

#: Beyond a pass's own time-out: the supervisor's time to kill it.
_MARGIN_S = 15.0
#: Of each stream and of the log; the lines about placement are at the beginning.
EXCERPT_BYTES = 256 * 1024
_DEADLINE_S = 30.0
#: For a device whose log is slow to read.
_COLLECT_DEADLINE_S = 45.0


def should_run_passes(record: JournalRecord, evidence: Evidence) -> bool:
    """Return whether passes are due: only after a run that succeeded."""
    ended = evidence.exit
    is_well = evidence.error is None and ended is not None and ended.code == 0 and not ended.timed_out
    return is_well and len(evidence.passes) < len(record.plan.passes)


def mark_passes_interrupted(record: JournalRecord, evidence: Evidence) -> Evidence:
    """Return the evidence of a run whose next pass was interrupted by a restart of the agent."""
    missing = record.plan.passes[len(evidence.passes) :][:1]
    error = HostError("the agent was restarted during the pass")
    lost = tuple(PassEvidence(name=diagnostic.name, error=RunError.of(error)) for diagnostic in missing)
    return replace(evidence, passes=(*evidence.passes, *lost))


async def run_passes(record: JournalRecord, device: OnlineDevice, evidence: Evidence) -> Evidence:
    """Return the evidence with the results of the plan's passes, run in order; a device error is a result.

    Call it once the run's own evidence is safe. After a pass in which the device went away no other is run.
    """
    results: list[PassEvidence] = []
    for diagnostic in record.plan.passes:
        result = await _run_pass(record, device, diagnostic)
        results.append(result)
        if result.error is not None:
            log.warning(
                "pass_failed", name=diagnostic.name, code=result.error.code, reason=result.error.message
            )
            break
    # The state of the device has changed since the run.
    device.state_cache.forget_after_run()
    return replace(evidence, passes=tuple(results))


async def _run_pass(record: JournalRecord, device: OnlineDevice, diagnostic: DiagnosticPass) -> PassEvidence:
    work_root, fence = device.adb.work_root, record.fence
    argv: tuple[str, ...] = ()
    try:
        values = placeholder_values(
            work=run_folder(work_root, fence),
            path_by_name={file.name: cache_path(work_root, file.digest) for file in record.plan.files},
        )
        try:
            words = tuple(Template(word).substitute(values) for word in diagnostic.argv)
            env = {name: Template(value).substitute(values) for name, value in diagnostic.env.items()}
        except (KeyError, ValueError) as error:
            raise FarmError(f"the pass has a placeholder without a value: {error}") from error
        argv = words
        part = RunPart(device=device.adb, fence=fence, name=f"pass.{diagnostic.name}")
        await part.start(argv, env, diagnostic.properties, timeout_s=diagnostic.timeout_s)
        await part.wait(timeout_s=diagnostic.timeout_s + _MARGIN_S)
        return await part.collect(diagnostic, argv)
    except FarmError as error:
        return PassEvidence(name=diagnostic.name, argv=argv, error=RunError.of(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """A further command of a run."""

    device: AdbDevice
    fence: int
    name: str

    def __str__(self) -> str:
        return f"{self.device.serial}: {self.name} of run {self.fence}"

    @property
    def folder(self) -> str:
        """Return the part's folder, below the run's own, so that it is removed with it."""
        return f"{run_folder(self.device.work_root, self.fence)}/{self.name}"

    async def start(
        self, argv: Sequence[str], env: Mapping[str, str], properties: Mapping[str, str], *, timeout_s: float
    ) -> None:
        """Start it in the run's folder; one that was started before is left running.

        System properties are set by the part itself. Their previous values are recorded on the device first,
        from where the supervisor restores them when the part ends or the run is cleaned up.

        Raises:
            SessionFenced: the device has seen a higher fence, or has cleaned this one up.
            DeviceError: the device went away, was too slow, or the supervisor did not start.
        """
        script = quote(f"{self.folder}/run.sh")
        result = await self.device.shell(
            f"mkdir -p {quote(self.folder)} && cat >{script}.new && [ -s {script}.new ] && "
            f"mv -f {script}.new {script} && "
            + supervisor_command(self.device.work_root, "start", self.fence, ceil(timeout_s * 10), self.name),
            stdin=self._script(argv, env, properties).encode(),
            deadline_s=_DEADLINE_S,
        )
        if (status := supervisor_exit(self.device, result)) is not SupervisorExit.DONE:
            raise DeviceProtocol(f"{self} did not start ({status.name})")

    async def wait(self, *, timeout_s: float) -> None:
        """Wait until it has ended.

        Raises:
            DeviceError: it did not end in time, is gone without a record, or the phone went away.
        """
        wait_s = ceil(timeout_s)
        command = supervisor_command(self.device.work_root, "wait", self.fence, wait_s, self.name)
        result = await self.device.shell(command, deadline_s=wait_s + _DEADLINE_S, again=False)
        if (status := supervisor_exit(self.device, result)) is not SupervisorExit.DONE:
            raise DeviceError(f"{self} failed ({status.name})")

    async def collect(self, diagnostic: DiagnosticPass, argv: tuple[str, ...]) -> PassEvidence:
        """Return its output, and the device's log from its start on, each up to the limit.

        Raises:
            DeviceError: there is no whole exit record.
        """
        command = _collect_command(self.folder, diagnostic.log_filters)
        result = await self.device.shell(command, deadline_s=_COLLECT_DEADLINE_S)
        sections = output_by_section(result.text)
        if (record := exit_record(sections.get("exit", ""))) is None:
            raise DeviceError(f"{self} has no exit record")
        return PassEvidence(
            name=diagnostic.name,
            argv=argv,
            exit=record,
            stdout=_section(result, "stdout"),
            stderr=_section(result, "stderr"),
            log=_section(result, "log"),
            pid=whole_number(sections.get("harness", "").partition(" ")[0]),
        )

    def _script(self, argv: Sequence[str], env: Mapping[str, str], properties: Mapping[str, str]) -> str:
        """Return the script of a part: record and set properties, record the time, run the command."""
        record = quote(f"{work_folder(self.device.work_root)}/properties")
        since = quote(f"{self.folder}/since")
        save = "; ".join(f'echo {quote(name)}="$(getprop {quote(name)})"' for name in properties)
        set_all = [f"setprop {quote(name)} {quote(value)}" for name, value in properties.items()]
        # An existing record has the values before an interrupted part: keep it.
        remember = f"[ -s {record} ] || {{ {{ {save}; }} >{record}.new && mv -f {record}.new {record}; }}"
        lines = [f"{{ {remember}; }} 2>/dev/null || exit 125", *set_all] if properties else []
        lines.append(f"date '+%m-%d %H:%M:%S.000' >{since}")
        command = run_script(run_folder(self.device.work_root, self.fence), argv, env)
        # In braces, like the command itself: a partly transferred script never runs.
        return "\n".join(["{", *lines, command.rstrip("\n"), "}", ""])


def _collect_command(folder: str, log_filters: Sequence[str]) -> str:
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
