"""Golden runs of checks: kept, judged by the band of their kind, and what they mean for a phone's health."""

from dataclasses import dataclass, replace
from datetime import datetime
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId
from farm.core.checks.reference_run import (
    MAX_UNFIT,
    GoldenVerdict,
    Judgement,
    band_key,
    health_after,
    judge,
    own_band_key,
    unfit_because,
)
from farm.core.devices.device import DeviceFacts, Health
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.core.runs.evidence import Evidence
from farm.harness.base.device_check import golden_time
from farm.services.operations.alarms import clear_alarm, is_seen_to, raise_alarm
from farm.store.checks import reference_runs
from farm.store.checks.reference_runs import GoldenRun
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.jobs.attempts import Attempt

_PROGRAM = "program"
#: More than a phone can be unfit in a row.
_LAST_RUNS = 4 * MAX_UNFIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What golden runs make of a phone's health, and why."""

    health: Health
    verdict: GoldenVerdict
    words: str


def keep_golden_run(connection: Connection, attempt: Attempt, evidence: Evidence, *, now: datetime) -> None:
    """Keep and judge what a check that was passed took; nothing is kept where its golden run did not end."""
    took = golden_time(evidence)
    device = devices.get_device(connection, attempt.device_id)
    if took is None or device.facts is None:
        return
    run = GoldenRun(
        job_id=attempt.job_id,
        device_id=attempt.device_id,
        band_key=_key(device, device.facts, attempt, took.cores),
        facts_id=attempt.facts_id,
        program_digest=attempt.plan.file(_PROGRAM).digest,
        value_ns=took.value_ns,
        verdict=GoldenVerdict.LEARNING,
        measured_at=now,
    )
    run = replace(
        run, unfit_because="; ".join(unfit_because(evidence.before, evidence.after, device.facts)) or None
    )
    reference_runs.add_golden_run(connection, replace(run, verdict=_judged(connection, run).verdict))


def _key(device: Device, facts: DeviceFacts, attempt: Attempt, cores: str) -> str:
    kind, since = band_key(facts, attempt.host_id, cores), device.level_accepted_at
    return kind if since is None else own_band_key(kind, device.device_id, since)


def standing_of_check(connection: Connection, job_id: JobId) -> Standing | None:
    """What the golden run of a check makes of its phone; None where it has none."""
    run = reference_runs.find_golden_run(connection, job_id)
    if run is None:
        return None
    verdicts = reference_runs.verdicts_in_band(
        reference_runs.own_runs(connection, run.device_id, limit=_LAST_RUNS)
    )
    words = _judged(connection, run).words
    return Standing(health=health_after(verdicts), verdict=run.verdict, words=words)


def was_out_before(connection: Connection, device_id: DeviceId) -> GoldenRun | None:
    """The last golden run of a phone that golden runs keep from being good; None where they do not."""
    since = devices.get_device(connection, device_id).level_accepted_at
    found = reference_runs.own_runs(connection, device_id, limit=_LAST_RUNS)
    found = [run for run in found if since is None or run.measured_at >= since]
    return found[0] if health_after(reference_runs.verdicts_in_band(found)) is not Health.GOOD else None


def tell_of_golden_run(
    connection: Connection, device_id: DeviceId, standing: Standing, *, now: datetime
) -> None:
    """Raise or clear the alarm of a phone that is not what its band says. A bad phone's is for sure."""
    name = devices.get_device(connection, device_id).name
    kind, subject = AlarmKind.BAND_DRIFT, AlarmSubject.DEVICE
    if standing.verdict in (GoldenVerdict.IN_BAND, GoldenVerdict.LEARNING):
        clear_alarm(connection, kind, subject, device_id, cause=standing.words, now=now)
    elif standing.health is not Health.BAD and standing.verdict is not GoldenVerdict.FAST:
        return
    elif not is_seen_to(connection, kind, subject, device_id, now=now):
        raise_alarm(
            connection,
            kind,
            subject,
            device_id,
            message=f"{name}: {standing.words}",
            hint=_hint(standing, name),
            now=now,
        )


def golden_words(connection: Connection, device: Device) -> str | None:
    """What a phone's last golden run took, and how that compares; None before its first."""
    last = reference_runs.own_runs(connection, device.device_id, limit=1)
    if not last:
        return None
    run = last[0]
    return f"{run.verdict.replace('_', ' ')}: {_judged(connection, run).words}"


def _judged(connection: Connection, run: GoldenRun) -> Judgement:
    return judge(
        run.value_ns,
        unfit=() if run.unfit_because is None else (run.unfit_because,),
        kind=reference_runs.runs_of_kind(
            connection, run.band_key, run.program_digest, before=run.measured_at
        ),
        own=reference_runs.own_fit_runs(connection, run),
        now=run.measured_at,
    )


def _hint(standing: Standing, name: str) -> str:
    if standing.verdict is GoldenVerdict.FAST:
        return (
            f"what changed on {name}? Another governor, or an update; numbers from before do not compare."
            f" If it is to stay so: farm device accept {name} --reason WHY"
        )
    return (
        f"look at the battery of {name}, its power mode and its heat; then farm device check {quote(name)}."
        f" If it is to stay so: farm device accept {name} --reason WHY"
    )
