"""Golden runs of checks: kept, judged by the band of their kind, and what they mean for a phone's health."""

from dataclasses import dataclass, replace
from datetime import datetime
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId
from farm.core.checks.reference_run import (
    MAX_UNFIT,
    ReferenceAssessment,
    ReferenceVerdict,
    assess_reference_run,
    health_after,
    own_reference_key,
    reference_key,
    unfit_reasons,
)
from farm.core.devices.device import DeviceFacts, Health
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.core.runs.evidence import Evidence
from farm.harness.base.device_check import reference_time
from farm.services.operations.alarms import clear_alarm, is_acknowledged, raise_alarm
from farm.store.checks import reference_runs
from farm.store.checks.reference_runs import ReferenceRun
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.jobs.attempts import Attempt

_PROGRAM = "program"
#: More than a phone can be unfit in a row.
_LAST_RUNS = 4 * MAX_UNFIT


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceState:
    """What golden runs make of a phone's health, and why."""

    health: Health
    verdict: ReferenceVerdict
    words: str


def record_reference_run(
    connection: Connection, attempt: Attempt, evidence: Evidence, *, now: datetime
) -> None:
    """Keep and judge what a check that was passed took; nothing is kept where its golden run did not end."""
    took = reference_time(evidence)
    device = devices.get_device(connection, attempt.device_id)
    if took is None or device.facts is None:
        return
    run = ReferenceRun(
        job_id=attempt.job_id,
        device_id=attempt.device_id,
        reference_key=_key(device, device.facts, attempt, took.cores),
        facts_id=attempt.facts_id,
        program_digest=attempt.plan.file(_PROGRAM).digest,
        value_ns=took.value_ns,
        verdict=ReferenceVerdict.LEARNING,
        measured_at=now,
    )
    run = replace(
        run, unfit_reasons="; ".join(unfit_reasons(evidence.before, evidence.after, device.facts)) or None
    )
    reference_runs.add_reference_run(connection, replace(run, verdict=_assess(connection, run).verdict))


def _key(device: Device, facts: DeviceFacts, attempt: Attempt, cores: str) -> str:
    kind, since = reference_key(facts, attempt.host_id, cores), device.rebaselined_at
    return kind if since is None else own_reference_key(kind, device.device_id, since)


def reference_state_of_check(connection: Connection, job_id: JobId) -> ReferenceState | None:
    """What the golden run of a check makes of its phone; None where it has none."""
    run = reference_runs.find_reference_run(connection, job_id)
    if run is None:
        return None
    verdicts = reference_runs.verdicts_in_same_range(
        reference_runs.own_runs(connection, run.device_id, limit=_LAST_RUNS)
    )
    words = _assess(connection, run).words
    return ReferenceState(health=health_after(verdicts), verdict=run.verdict, words=words)


def find_run_out_of_range(connection: Connection, device_id: DeviceId) -> ReferenceRun | None:
    """The last golden run of a phone that golden runs keep from being good; None where they do not."""
    since = devices.get_device(connection, device_id).rebaselined_at
    found = reference_runs.own_runs(connection, device_id, limit=_LAST_RUNS)
    found = [run for run in found if since is None or run.measured_at >= since]
    return found[0] if health_after(reference_runs.verdicts_in_same_range(found)) is not Health.GOOD else None


def record_reference_run_event(
    connection: Connection, device_id: DeviceId, standing: ReferenceState, *, now: datetime
) -> None:
    """Raise or clear the alarm of a phone that is not what its band says. A bad phone's is for sure."""
    name = devices.get_device(connection, device_id).name
    kind, subject = AlarmKind.REFERENCE_DRIFT, AlarmSubject.DEVICE
    if standing.verdict in (ReferenceVerdict.IN_RANGE, ReferenceVerdict.LEARNING):
        clear_alarm(connection, kind, subject, device_id, cause=standing.words, now=now)
    elif standing.health is not Health.BAD and standing.verdict is not ReferenceVerdict.FAST:
        return
    elif not is_acknowledged(connection, kind, subject, device_id, now=now):
        raise_alarm(
            connection,
            kind,
            subject,
            device_id,
            message=f"{name}: {standing.words}",
            hint=_hint(standing, name),
            now=now,
        )


def reference_run_text(connection: Connection, device: Device) -> str | None:
    """What a phone's last golden run took, and how that compares; None before its first."""
    last = reference_runs.own_runs(connection, device.device_id, limit=1)
    if not last:
        return None
    run = last[0]
    return f"{run.verdict.replace('_', ' ')}: {_assess(connection, run).words}"


def _assess(connection: Connection, run: ReferenceRun) -> ReferenceAssessment:
    return assess_reference_run(
        run.value_ns,
        unfit=() if run.unfit_reasons is None else (run.unfit_reasons,),
        kind=reference_runs.runs_of_kind(
            connection, run.reference_key, run.program_digest, before=run.measured_at
        ),
        own=reference_runs.own_fit_runs(connection, run),
        now=run.measured_at,
    )


def _hint(standing: ReferenceState, name: str) -> str:
    if standing.verdict is ReferenceVerdict.FAST:
        return (
            f"what changed on {name}? Another governor, or an update; numbers from before do not compare."
            f" If it is to stay so: farm device accept {name} --reason WHY"
        )
    return (
        f"look at the battery of {name}, its power mode and its heat; then farm device check {quote(name)}."
        f" If it is to stay so: farm device accept {name} --reason WHY"
    )
