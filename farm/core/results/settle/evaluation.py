"""Decide what reports change, by what the farm knows of their attempts: pure, it reads and writes nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from farm.core.base.ids import AttemptId, Digest
from farm.core.checks.failures import HOST_INCIDENT, Incident, may_be_host_caused
from farm.core.devices.host_state import CREDENTIAL_IN_USE_HINT
from farm.core.errors import (
    Blame,
    FarmBusy,
    FarmError,
    Forbidden,
    NotFound,
    ReportConflict,
)
from farm.core.jobs.attempt import LIVE_STATES, AttemptEvent, AttemptOutcome, AttemptRecord, AttemptState
from farm.core.jobs.job import Job, JobKind, JobState
from farm.core.jobs.retry import MOVED, DeviceLoss, FinishedAttempt
from farm.core.results.settle.check_outcome import end_of_check, reference_outcome
from farm.core.results.settle.consequences import (
    check_after_loss,
    end_other_rounds,
    host_incident,
    is_explained_by_incident,
    may_be_repeated,
    record_placement_change,
    repeat_block,
    retry_or_end_job,
    suspect_device,
)
from farm.core.results.settle.effects import (
    AddMeasurement,
    Consequence,
    Effect,
    EndAttempt,
    EndJob,
    KeepReport,
    NotifyHosts,
    Settlement,
)
from farm.core.results.settle.report import ParsedReport, ReportAnswer, ReportReading
from farm.core.results.settle.report_context import (
    ConsequenceContext,
    ReportContext,
    RetryContext,
    SettlementContext,
)
from farm.core.runs.measurement import Outcome

#: For a batchable report: it is decided by its own rows and the last placement of its series.
_NO_FURTHER_ROWS = ConsequenceContext(retry=RetryContext(), block=None, host=None, health=None, check=None)


def evaluate(context: SettlementContext, reports: Sequence[ParsedReport]) -> tuple[Settlement, ...]:
    """Decide as many of the next reports as this context allows, at least one.

    Refused and repeated reports are answered on the way. Stop before a report that needs a context read after
    these effects are written.
    """
    settlements: list[Settlement] = []
    settled: set[AttemptId] = set()
    placed: set[Digest] = set()
    for report in reports:
        attempt_id = report.incoming.attempt_id
        if attempt_id in settled:
            # Evaluated after the effects of the first report are written.
            break
        reported = context.reports.get(attempt_id)
        if (answer := answer_without_settling(report, reported)) is not None:
            settlements.append(Settlement(answer=answer))
            continue
        assert reported is not None
        if not counts(reported):
            if not settled:
                settlements.append(_settle_late(report, reported))
            break
        if not _is_batchable(report, reported):
            if not settled:
                assert context.consequences is not None
                settlements.append(_settle_counted(report, reported, context, context.consequences))
            break
        measured = _reading(report).measured
        assert measured is not None
        if measured.placement is not None:
            if measured.series.digest in placed:
                # Its placement is compared with the previous one, which is not stored yet.
                break
            placed.add(measured.series.digest)
        settled.add(attempt_id)
        settlements.append(_settle_counted(report, reported, context, _NO_FURTHER_ROWS))
    return tuple(settlements)


def first_settled_alone(
    reports: Sequence[ParsedReport], contexts: Mapping[AttemptId, ReportContext]
) -> tuple[ParsedReport, ReportContext] | None:
    """Return the report that is settled next, if it counts and more follows than the end of its job."""
    for report in reports:
        reported = contexts.get(report.incoming.attempt_id)
        if answer_without_settling(report, reported) is not None:
            continue
        assert reported is not None
        alone = counts(reported) and not _is_batchable(report, reported)
        return (report, reported) if alone else None
    return None


def answer_without_settling(
    report: ParsedReport, reported: ReportContext | None
) -> ReportAnswer | FarmError | None:
    """Return the answer to a report that needs no settling; None: settle it.

    That is the stored answer to a report that came before, or the error with which one is refused.

    It is refused with:
        NotFound: there is no such attempt.
        Forbidden: the attempt is another host's.
        ReportConflict: the attempt was settled by another report.
        InvalidInput: the body is no report, or quotes another fencing token.
        FarmBusy: it was not parsed, because it would have been refused at that time; the agent sends it
            again.
    """
    if reported is None:
        return NotFound(f"there is no attempt {report.incoming.attempt_id}")
    attempt = reported.attempt
    if attempt.host_id != report.incoming.host_id:
        message = f"attempt {attempt.attempt_id} is not of host {report.incoming.host_id}"
        return Forbidden(message, hint=CREDENTIAL_IN_USE_HINT)
    if report.digest in reported.report_digests:
        return stored_answer(attempt)
    if attempt.report_digest is not None:
        return ReportConflict(f"attempt {attempt.attempt_id} was settled by report {attempt.report_digest}")
    if isinstance(report.reading, FarmError):
        return report.reading
    if report.reading is None:
        message = f"attempt {attempt.attempt_id} did not qualify for parsing when its report arrived"
        return FarmBusy(message, hint="try again")
    return None


def stored_answer(attempt: AttemptRecord) -> ReportAnswer:
    """Return what became of an attempt, for a report that changes nothing."""
    return ReportAnswer(
        attempt_id=attempt.attempt_id,
        counted=attempt.report_digest is not None,
        outcome=attempt.outcome,
        message=attempt.message or "",
    )


def counts(reported: ReportContext) -> bool:
    """Tell whether a report of this attempt decides about its job."""
    attempt, job = reported.attempt, reported.job
    over = attempt.state in (AttemptState.FINISHED, AttemptState.RETURNED)
    if job.kind is JobKind.CHECK and attempt.code == MOVED:
        # The device has moved: a check on the old host says nothing about it on the new one.
        return False
    return not over and job.attempt_id == attempt.attempt_id and job.state is not JobState.FINISHED


def _is_batchable(report: ParsedReport, reported: ReportContext) -> bool:
    """Tell whether a report that counts is of a successful run under way, and repeats no block."""
    measured = _reading(report).measured
    is_under_way = reported.attempt.state in LIVE_STATES and reported.job.state is JobState.ACTIVE
    return is_under_way and measured is not None and not may_be_repeated(measured)


def _reading(report: ParsedReport) -> ReportReading:
    """Return what a report says that is not refused."""
    assert isinstance(report.reading, ReportReading)
    return report.reading


def _settle_late(report: ParsedReport, reported: ReportContext) -> Settlement:
    """Keep a report that no longer counts; if its job was cancelled, end the attempt that is still live."""
    attempt, effects = reported.attempt, _keep(report, reported)
    if reported.job.state is not JobState.FINISHED or attempt.state not in LIVE_STATES:
        return Settlement(answer=stored_answer(attempt), effects=effects)
    cause = "its job was cancelled before the report came"
    end = EndAttempt(
        at=report.incoming.at,
        attempt=attempt,
        event=AttemptEvent.CANCELLED,
        outcome=AttemptOutcome(outcome=Outcome.CANCELLED, message=cause),
        actor=f"agent:{attempt.host_id}",
        cause=cause,
    )
    ended = replace(attempt, outcome=Outcome.CANCELLED, message=cause)
    return Settlement(answer=stored_answer(ended), effects=(*effects, end))


def _settle_counted(
    report: ParsedReport,
    reported: ReportContext,
    context: SettlementContext,
    consequences: ConsequenceContext,
) -> Settlement:
    """Settle a report that counts, with what follows from it for more than its attempt and job."""
    attempt, job, now = reported.attempt, reported.job, report.incoming.at
    reading = _reading(report)
    incidents, incident_effects = _find_incident(attempt, reading.outcome, consequences, now=now)
    outcome = _reassign_blame(attempt, reading.outcome, incidents)
    effects: list[Effect] = [*_keep(report, reported), *incident_effects]
    if job.kind is JobKind.CHECK and consequences.check is not None and outcome.outcome is Outcome.SUCCEEDED:
        outcome, check_effects = reference_outcome(consequences.check)
        effects += check_effects
    job_effects = _decide_job(reported, outcome, consequences.retry, now=now)
    effects += [_end_attempt(report, attempt, outcome), *job_effects]
    if (measured := reading.measured) is not None:
        effects += record_placement_change(measured, context.last_places.get(measured.series.digest), now=now)
        effects.append(AddMeasurement(measured=measured))
        effects += repeat_block(consequences.block, job, measured, now=now)
    if job.kind is JobKind.CHECK and consequences.check is not None and _ends_job(job_effects, job):
        effects += end_of_check(consequences.check, job, outcome, now=now)
    if job.kind is JobKind.BENCHMARK and outcome.blame is Blame.DEVICE and consequences.health is not None:
        effects += suspect_device(consequences.health, attempt, job, outcome, job_effects, incidents, now=now)
        effects += check_after_loss(consequences.retry, attempt.device_id, outcome.code, now=now)
    answer = ReportAnswer(
        attempt_id=attempt.attempt_id, counted=True, outcome=outcome.outcome, message=outcome.message
    )
    return Settlement(answer=answer, effects=tuple(effects))


def _decide_job(
    reported: ReportContext, outcome: AttemptOutcome, retry: RetryContext, *, now: datetime
) -> tuple[Consequence, ...]:
    """Finish a job, or queue it again.

    A job that was queued again when this attempt was lost stays queued, unless its retry budget is used up.
    """
    attempt, job, actor = reported.attempt, reported.job, f"agent:{reported.attempt.host_id}"
    if outcome.outcome is not Outcome.INCONCLUSIVE:
        return (
            EndJob(at=now, job=job, outcome=outcome, actor=actor),
            *end_other_rounds(retry, outcome, now=now, actor=actor),
        )
    this = FinishedAttempt(
        outcome=outcome.outcome, blame=outcome.blame, code=outcome.code, device_id=attempt.device_id
    )
    loss = DeviceLoss(device_id=attempt.device_id, code=outcome.code)
    losses = (*retry.losses, loss) if outcome.blame is Blame.DEVICE else retry.losses
    after = replace(retry, tries=(*retry.tries, this), losses=losses)
    return retry_or_end_job(after, job, outcome, now=now, actor=actor)


def _find_incident(
    attempt: AttemptRecord, outcome: AttemptOutcome, consequences: ConsequenceContext, *, now: datetime
) -> tuple[tuple[Incident, ...], tuple[Consequence, ...]]:
    """Return the incidents that may explain how an attempt ends, and the effects that open or widen one."""
    incidents = () if consequences.health is None else consequences.health.incidents
    if consequences.host is None or _has_moved(attempt, outcome):
        return incidents, ()
    effects, open_incident = host_incident(consequences.host, now=now, failing=attempt.device_id)
    if open_incident is None:
        return incidents, effects
    others = (incident for incident in incidents if incident.incident_id != open_incident.incident_id)
    return (*others, open_incident), effects


def _reassign_blame(
    attempt: AttemptRecord, outcome: AttemptOutcome, incidents: Collection[Incident]
) -> AttemptOutcome:
    """Blame the host instead of the device where a move or an incident explains the failure."""
    if _has_moved(attempt, outcome):
        return replace(outcome, blame=Blame.HOST, code=MOVED)
    is_lost = outcome.outcome is Outcome.INCONCLUSIVE and may_be_host_caused(outcome.blame, outcome.code)
    if not (is_lost and is_explained_by_incident(attempt, incidents)):
        return outcome
    message = f"several devices of {attempt.host_id} failed at once: {outcome.message}"
    return replace(outcome, blame=Blame.HOST, code=HOST_INCIDENT, message=message)


def _has_moved(attempt: AttemptRecord, outcome: AttemptOutcome) -> bool:
    # The host that the device moved to ended this run; the device did not fail.
    is_lost = outcome.outcome is Outcome.INCONCLUSIVE and outcome.blame is Blame.DEVICE
    return is_lost and attempt.code == MOVED


def _keep(report: ParsedReport, reported: ReportContext) -> tuple[KeepReport, NotifyHosts]:
    """Keep the bytes of a report, and wake those to whom the end of its attempt may mean work."""
    attempt = reported.attempt
    keep = KeepReport(
        at=report.incoming.at,
        attempt_id=attempt.attempt_id,
        digest=report.digest,
        body=report.incoming.body,
        counted=counts(reported),
    )
    # None wakes all hosts: devices of other hosts may wait for the CPU this run shared.
    hosts = frozenset({attempt.host_id}) if attempt.cpu_domain is None else None
    return keep, NotifyHosts(hosts=hosts)


def _end_attempt(report: ParsedReport, attempt: AttemptRecord, outcome: AttemptOutcome) -> EndAttempt:
    return EndAttempt(
        at=report.incoming.at,
        attempt=attempt,
        event=AttemptEvent.SETTLED,
        outcome=outcome,
        actor=f"agent:{attempt.host_id}",
        cause=outcome.code or outcome.outcome,
        report_digest=report.digest,
    )


def _ends_job(effects: Sequence[Consequence], job: Job) -> bool:
    return any(isinstance(effect, EndJob) and effect.job.job_id == job.job_id for effect in effects)
