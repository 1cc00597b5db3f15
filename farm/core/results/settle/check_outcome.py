"""Outcome of a check, by its reference run and earlier ones, and the device's health; pure."""

from dataclasses import dataclass, replace
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
    verdicts_in_band,
)
from farm.core.devices.device import Health
from farm.core.errors import Blame
from farm.core.jobs.attempt import AttemptOutcome
from farm.core.jobs.job import Job
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.core.results.settle.effects import ChangeHealth, ClearAlarm, KeepReferenceRun, RaiseAlarm, RowEffect
from farm.core.results.settle.report_context import CheckContext, ReferenceContext
from farm.core.runs.measurement import Outcome

#: More than a device can be unfit in a row.
LAST_RUNS = 4 * MAX_UNFIT


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceState:
    """The health that reference runs give a device, with the reason."""

    health: Health
    verdict: ReferenceVerdict
    words: str


def reference_outcome(known: CheckContext) -> tuple[AttemptOutcome, tuple[RowEffect, ...]]:
    """Return how a check ends that all of a device passed, by its reference run; and keep that run."""
    if known.new_run is None:
        # A phone that was too slow is not good because its golden run does not come to an end any more.
        last = _was_out_before(known)
        if last is None:
            return AttemptOutcome(outcome=Outcome.SUCCEEDED), ()
        words = f"its golden run did not come to an end that can be timed; the last one was {last.verdict}"
        return _failed_check(ReferenceVerdict.UNFIT, words), ()
    run = replace(known.new_run.run, verdict=_judged(known.new_run).verdict)
    kept = (KeepReferenceRun(run=run),)
    state = _new_state(known, known.new_run)
    if state.health is Health.GOOD:
        return AttemptOutcome(outcome=Outcome.SUCCEEDED), kept
    return _failed_check(state.verdict, state.words), kept


def end_of_check(
    known: CheckContext, job: Job, outcome: AttemptOutcome, *, now: datetime
) -> tuple[RowEffect, ...]:
    """Turn the end of a check into the device's health; one that host or farm spoiled says nothing of it."""
    if outcome.outcome is Outcome.INCONCLUSIVE and outcome.blame is not Blame.DEVICE:
        return ()
    passed = outcome.outcome is Outcome.SUCCEEDED
    to, cause = (Health.GOOD, "it passed its check") if passed else (Health.BAD, outcome.message)
    state = _state_of_last_check(known, job)
    alarm: tuple[RowEffect, ...] = ()
    if state is not None:
        to, cause = state.health, f"{cause}: {state.words}" if passed else cause
        alarm = _drift_alarm(known, job.device_id, state, now=now)
    health = ChangeHealth(at=now, device_id=job.device_id, sources=tuple(Health), to=to, cause=cause)
    return (*alarm, health)


def _failed_check(verdict: ReferenceVerdict, words: str) -> AttemptOutcome:
    return AttemptOutcome(outcome=Outcome.FAILED, blame=Blame.DEVICE, code=check_code(verdict), message=words)


def _was_out_before(known: CheckContext) -> ReferenceRun | None:
    """Return the last run of a device that reference runs keep from being good; None where they do not."""
    since = known.rebaselined_at
    runs = [run for run in known.past_runs if since is None or run.measured_at >= since]
    return runs[0] if health_after(verdicts_in_band(runs)) is not Health.GOOD else None


def _state_of_last_check(known: CheckContext, job: Job) -> ReferenceState | None:
    if known.last_check_id == job.job_id and known.new_run is not None:
        return _new_state(known, known.new_run)
    if known.last_run is None:
        return None
    run = known.last_run.run
    return ReferenceState(
        health=health_after(verdicts_in_band(known.past_runs)),
        verdict=run.verdict,
        words=_judged(known.last_run).words,
    )


def _new_state(known: CheckContext, new: ReferenceContext) -> ReferenceState:
    judgement = _judged(new)
    run = replace(new.run, verdict=judgement.verdict)
    runs = sorted([run, *known.past_runs], key=lambda each: each.measured_at, reverse=True)[:LAST_RUNS]
    return ReferenceState(
        health=health_after(verdicts_in_band(runs)), verdict=judgement.verdict, words=judgement.words
    )


def _judged(known: ReferenceContext) -> ReferenceAssessment:
    run = known.run
    return assess_reference_run(
        run.value_ns,
        unfit=() if run.unfit_reasons is None else (run.unfit_reasons,),
        kind=known.of_kind,
        own=known.of_device,
        now=run.measured_at,
    )


def _drift_alarm(
    known: CheckContext, device_id: DeviceId, state: ReferenceState, *, now: datetime
) -> tuple[RowEffect, ...]:
    """Raise or clear the alarm of a device that is not what its band says. A bad device's is for sure."""
    kind, subject = AlarmKind.REFERENCE_DRIFT, AlarmSubject.DEVICE
    if state.verdict in (ReferenceVerdict.IN_RANGE, ReferenceVerdict.LEARNING):
        return (ClearAlarm(at=now, kind=kind, subject=subject, subject_id=device_id, cause=state.words),)
    if state.health is not Health.BAD and state.verdict is not ReferenceVerdict.FAST:
        return ()
    if known.alarm_was_cleared:
        return ()
    return (
        RaiseAlarm(
            at=now,
            kind=kind,
            subject=subject,
            subject_id=device_id,
            message=f"{known.name}: {state.words}",
            hint=_drift_hint(state, known.name),
        ),
    )


def _drift_hint(state: ReferenceState, name: str) -> str:
    if state.verdict is ReferenceVerdict.FAST:
        return (
            f"what changed on {name}? Another governor, or an update; numbers from before do not compare."
            f" If it is to stay so: farm device rebaseline {name} --reason WHY"
        )
    return (
        f"look at the battery of {name}, its power mode and its heat; then farm device check {quote(name)}."
        f" If it is to stay so: farm device rebaseline {name} --reason WHY"
    )
