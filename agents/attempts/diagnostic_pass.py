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
    lost = tuple(PassEvidence(name=each.name, trouble=_run_error(error)) for each in missing)
    return replace(evidence, passes=(*evidence.passes, *lost))


async def run_passes(record: JournalRecord, device: OnlineDevice, evidence: Evidence) -> Evidence:
    """Run the plan's passes in order and return the evidence with their results; never raises for a device
    error.

    Call it once the run's own evidence is safe. After a pass in which the device went away no other is run.
    """
    done: list[PassEvidence] = []
    for each in record.plan.passes:
        found = await _run_pass(record, device, each)
        done.append(found)
        if found.trouble is not None:
            log.warning("pass_failed", name=each.name, code=found.trouble.code, reason=found.trouble.message)
            break
    # The state of the device has changed since the run.
    device.memory.forget_after_run()
    return replace(evidence, passes=tuple(done))


async def _run_pass(record: JournalRecord, device: OnlineDevice, wanted: DiagnosticPass) -> PassEvidence:
    part = f"pass.{wanted.name}"
    adb, work_root, fence = device.adb, device.facts.work_root, record.fence
    argv: tuple[str, ...] = ()
    try:
        call = _pass_command(record, device, wanted)
        argv = call.argv
        await start_part(
            adb,
            work_root,
            fence,
            part,
            argv=call.argv,
            env=call.env,
            properties=wanted.properties,
            timeout_s=wanted.timeout_s,
        )
        await wait_part(adb, work_root, fence, part, timeout_s=wanted.timeout_s + _MARGIN_S)
        left = await collect_part(adb, work_root, fence, part, log_filters=wanted.log_filters)
    except FarmError as error:
        return PassEvidence(name=wanted.name, argv=argv, trouble=_run_error(error))
    return PassEvidence(
        name=wanted.name,
        argv=argv,
        exit=left.exit,
        stdout=left.stdout,
        stderr=left.stderr,
        log=left.log,
        pid=left.pid,
    )


def _pass_command(record: JournalRecord, device: OnlineDevice, wanted: DiagnosticPass) -> _PassCommand:
    work_root = device.facts.work_root
    paths = {file.name: cache_path(work_root, file.digest) for file in record.plan.files}
    values = placeholder_values(work=run_folder(work_root, record.fence), path_by_name=paths)
    try:
        return _PassCommand(
            argv=tuple(Template(word).substitute(values) for word in wanted.argv),
            env={name: Template(value).substitute(values) for name, value in wanted.env.items()},
        )
    except (KeyError, ValueError) as error:
        raise FarmError(f"the pass has a placeholder that nothing fills: {error}") from error


def _run_error(error: FarmError) -> RunError:
    return RunError(
        code=error.code,
        blame=error.blame,
        transient=error.transient,
        message=error.message,
        hint=error.hint,
    )
