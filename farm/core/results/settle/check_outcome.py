"""Outcome of a check, by its reference run and earlier ones, and the device's health; pure."""

from dataclasses import replace
from datetime import datetime
from shlex import quote

from farm.core.base.ids import DeviceId
from farm.core.checks.reference_run import (
    MAX_UNFIT,
    ReferenceAssessment,
    ReferenceRun,
    ReferenceVerdict,
    assess_reference_run,
    check_code,
    health_after,
    verdicts_in_range,
)
from farm.core.devices.device import Health
from farm.core.errors import Blame
from farm.core.jobs.attempt import AttemptOutcome
from farm.core.jobs.job import Job
from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.core.results.settle.effects import (
    ChangeHealth,
    ClearAlarm,
    Consequence,
    KeepReferenceRun,
    RaiseAlarm,
)
from farm.core.results.settle.report_context import CheckContext, ReferenceContext
from farm.core.runs.measurement import Outcome

#: More than a device can be unfit in a row.
LAST_RUNS = 4 * MAX_UNFIT


#: The health that reference runs give a device, with the reason.
ReferenceState = tuple[Health, ReferenceAssessment]


def reference_outcome(check: CheckContext) -> tuple[AttemptOutcome, tuple[KeepReferenceRun, ...]]:
    """Return how a check ends that all of a device passed, by its reference run; and keep that run."""
    if check.new_run is None:
        # A phone that was too slow does not become good because its reference run does not end any more.
        last = _last_run_out_of_range(check)
        if last is None:
            return AttemptOutcome(outcome=Outcome.SUCCEEDED), ()
        words = f"its reference run did not end in a way that can be timed; the last one was {last.verdict}"
        return _failed_check(ReferenceVerdict.UNFIT, words), ()
    health, assessment = _new_state(check, check.new_run)
    keep = (KeepReferenceRun(run=replace(check.new_run.run, verdict=assessment.verdict)),)
    if health is Health.GOOD:
        return AttemptOutcome(outcome=Outcome.SUCCEEDED), keep
    return _failed_check(assessment.verdict, assessment.words), keep


def end_of_check(
    check: CheckContext, job: Job, outcome: AttemptOutcome, *, now: datetime
) -> tuple[Consequence, ...]:
    """Turn the end of a check into the device's health; one that host or farm spoiled says nothing of it."""
    if outcome.outcome is Outcome.INCONCLUSIVE and outcome.blame is not Blame.DEVICE:
        return ()
    passed = outcome.outcome is Outcome.SUCCEEDED
    to, cause = (Health.GOOD, "it passed its check") if passed else (Health.BAD, outcome.message)
    state = _state_of_last_check(check, job)
    alarm: tuple[Consequence, ...] = ()
    if state is not None:
        to, cause = state[0], f"{cause}: {state[1].words}" if passed else cause
        alarm = _drift_alarm(check, job.device_id, state, now=now)
    health = ChangeHealth(at=now, device_id=job.device_id, sources=tuple(Health), to=to, cause=cause)
    return (*alarm, health)


def _failed_check(verdict: ReferenceVerdict, words: str) -> AttemptOutcome:
    return AttemptOutcome(outcome=Outcome.FAILED, blame=Blame.DEVICE, code=check_code(verdict), message=words)


def _last_run_out_of_range(check: CheckContext) -> ReferenceRun | None:
    """Return the last run of a device that reference runs keep from being good; None where they do not."""
    since = check.rebaselined_at
    runs = [run for run in check.past_runs if since is None or run.measured_at >= since]
    return runs[0] if health_after(verdicts_in_range(runs)) is not Health.GOOD else None


def _state_of_last_check(check: CheckContext, job: Job) -> ReferenceState | None:
    if check.last_check_id == job.job_id and check.new_run is not None:
        return _new_state(check, check.new_run)
    if check.last_run is None:
        return None
    assessment = replace(_assess(check.last_run), verdict=check.last_run.run.verdict)
    return health_after(verdicts_in_range(check.past_runs)), assessment


def _new_state(check: CheckContext, new: ReferenceContext) -> ReferenceState:
    assessment = _assess(new)
    run = replace(new.run, verdict=assessment.verdict)
    runs = sorted([run, *check.past_runs], key=lambda run: run.measured_at, reverse=True)[:LAST_RUNS]
    return health_after(verdicts_in_range(runs)), assessment


def _assess(reference: ReferenceContext) -> ReferenceAssessment:
    return assess_reference_run(reference.run, of_kind=reference.of_kind, of_device=reference.of_device)


def _drift_alarm(
    check: CheckContext, device_id: DeviceId, state: ReferenceState, *, now: datetime
) -> tuple[Consequence, ...]:
    """Raise or clear the alarm of a device that is out of its range; one that is suspect gets none yet."""
    health, assessment = state
    alarm = DueAlarm(
        kind=AlarmKind.REFERENCE_DRIFT,
        subject=AlarmSubject.DEVICE,
        subject_id=device_id,
        message=f"{check.name}: {assessment.words}",
        hint=_drift_hint(assessment.verdict, check.name),
    )
    if assessment.verdict in (ReferenceVerdict.IN_RANGE, ReferenceVerdict.LEARNING):
        return (ClearAlarm(at=now, alarm=alarm.key, cause=assessment.words),)
    if health is not Health.BAD and assessment.verdict is not ReferenceVerdict.FAST:
        return ()
    return (RaiseAlarm(at=now, alarm=alarm),)


def _drift_hint(verdict: ReferenceVerdict, name: str) -> str:
    advice = (
        f"look at the battery of {name}, its power mode and its heat; then farm device check {quote(name)}."
    )
    if verdict is ReferenceVerdict.FAST:
        advice = (
            f"what changed on {name}? Another governor, or an update; numbers from before do not compare."
        )
    return f"{advice} If it is to stay so: farm device rebaseline {name} --reason WHY"
