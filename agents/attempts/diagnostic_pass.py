"""Uncounted diagnostic passes after a run; a failed pass never fails the run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from string import Template

import structlog

from agents.device.paths import cache_path, run_folder
from agents.device.run.diagnostic_pass import collect_part, start_part, wait_part
from agents.devices.monitor import OnlineDevice
from agents.outbox.journal import JournalRecord
from farm.core.errors import FarmError, HostError
from farm.core.runs.evidence import Evidence, PassEvidence, RunError
from farm.core.runs.plan import DiagnosticPass, placeholder_values

log = structlog.get_logger(__name__)

#: Beyond a pass's own time-out: the supervisor's time to kill it.
_MARGIN_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _PassCommand:
    argv: tuple[str, ...]
    env: Mapping[str, str]


def should_run_passes(record: JournalRecord, evidence: Evidence) -> bool:
    """Return whether passes are due: only after a run that succeeded."""
    ended = evidence.exit
    is_well = evidence.trouble is None and ended is not None and ended.code == 0 and not ended.timed_out
    return is_well and len(evidence.passes) < len(record.plan.passes)


def mark_passes_interrupted(record: JournalRecord, evidence: Evidence) -> Evidence:
    """Return the evidence of a run whose next pass was interrupted by a restart of the agent."""
    missing = record.plan.passes[len(evidence.passes) :][:1]
    error = HostError("the agent was restarted during the pass")
    lost = tuple(PassEvidence(name=diagnostic.name, trouble=_run_error(error)) for diagnostic in missing)
    return replace(evidence, passes=(*evidence.passes, *lost))


async def run_passes(record: JournalRecord, device: OnlineDevice, evidence: Evidence) -> Evidence:
    """Run the plan's passes in order and return the evidence with their results; never raises for a device
    error.

    Call it once the run's own evidence is safe. After a pass in which the device went away no other is run.
    """
    results: list[PassEvidence] = []
    for diagnostic in record.plan.passes:
        result = await _run_pass(record, device, diagnostic)
        results.append(result)
        if result.trouble is not None:
            log.warning(
                "pass_failed", name=diagnostic.name, code=result.trouble.code, reason=result.trouble.message
            )
            break
    # The state of the device has changed since the run.
    device.memory.forget_after_run()
    return replace(evidence, passes=tuple(results))


async def _run_pass(record: JournalRecord, device: OnlineDevice, diagnostic: DiagnosticPass) -> PassEvidence:
    part = f"pass.{diagnostic.name}"
    adb, work_root, fence = device.adb, device.facts.work_root, record.fence
    argv: tuple[str, ...] = ()
    try:
        command = _pass_command(record, device, diagnostic)
        argv = command.argv
        await start_part(
            adb,
            work_root,
            fence,
            part,
            argv=command.argv,
            env=command.env,
            properties=diagnostic.properties,
            timeout_s=diagnostic.timeout_s,
        )
        await wait_part(adb, work_root, fence, part, timeout_s=diagnostic.timeout_s + _MARGIN_S)
        collected = await collect_part(adb, work_root, fence, part, log_filters=diagnostic.log_filters)
    except FarmError as error:
        return PassEvidence(name=diagnostic.name, argv=argv, trouble=_run_error(error))
    return PassEvidence(
        name=diagnostic.name,
        argv=argv,
        exit=collected.exit,
        stdout=collected.stdout,
        stderr=collected.stderr,
        log=collected.log,
        pid=collected.pid,
    )


def _pass_command(record: JournalRecord, device: OnlineDevice, diagnostic: DiagnosticPass) -> _PassCommand:
    work_root = device.facts.work_root
    paths = {file.name: cache_path(work_root, file.digest) for file in record.plan.files}
    values = placeholder_values(work=run_folder(work_root, record.fence), path_by_name=paths)
    try:
        return _PassCommand(
            argv=tuple(Template(word).substitute(values) for word in diagnostic.argv),
            env={name: Template(value).substitute(values) for name, value in diagnostic.env.items()},
        )
    except (KeyError, ValueError) as error:
        raise FarmError(f"the pass has a placeholder without a value: {error}") from error


def _run_error(error: FarmError) -> RunError:
    return RunError(
        code=error.code,
        blame=error.blame,
        transient=error.transient,
        message=error.message,
        hint=error.hint,
    )
