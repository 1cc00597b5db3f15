"""Decide what reports change, by what the farm knows of their attempts: pure, it reads and writes nothing."""

from collections.abc import Mapping, Sequence
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
    device_health,
    end_other_rounds,
    host_incident,
    hosts_doing,
    may_be_repeated,
    placement_change,
    repeated_block,
    retry_or_end_job,
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

#: Of a run that succeeded, and whose block is not repeated.
_NO_CONSEQUENCES = ConsequenceContext(job=RetryContext(), block=None, host=None, health=None, check=None)


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
            # The second one meets what the first has made of the attempt.
            break
        run = context.reports.get(attempt_id)
        if (answer := answer_unsettled(report, run)) is not None:
            settlements.append(Settlement(answer=answer))
            continue
        assert run is not None
        if not _is_batchable(report, run):
            if not settled:
                settlements.append(_settle_alone(report, run, context))
            break
        measured = _reading(report).measured
        assert measured is not None
        if measured.placement is not None:
            if measured.series.digest in placed:
                # Its placement is compared with the previous one, which is not stored yet.
                break
            placed.add(measured.series.digest)
        settled.add(attempt_id)
        settlements.append(_settle_counted(report, run, context, _NO_CONSEQUENCES))
    return tuple(settlements)


def with_consequences(
    reports: Sequence[ParsedReport], contexts: Mapping[AttemptId, ReportContext]
) -> tuple[ParsedReport, ReportContext] | None:
    """Return the report that is settled next, if it counts and more follows than the end of its job."""
    for report in reports:
        context = contexts.get(report.incoming.attempt_id)
        if answer_unsettled(report, context) is not None:
            continue
        assert context is not None
        alone = counts(context) and not _is_batchable(report, context)
        return (report, context) if alone else None
    return None


def answer_unsettled(report: ParsedReport, run: ReportContext | None) -> ReportAnswer | FarmError | None:
    """Return the stored answer to a report that came before, or why it is refused; None for one to settle.

    It is refused with:
        NotFound: there is no such attempt.
        Forbidden: the attempt is another host's.
        ReportConflict: the attempt was settled by another report.
        InvalidInput: the body is no report, or quotes another fencing token.
        FarmBusy: it was not parsed, because it seemed to be refused.
    """
    if run is None:
        return NotFound(f"there is no attempt {report.incoming.attempt_id}")
    attempt = run.attempt
    if attempt.host_id != report.incoming.host_id:
        message = f"attempt {attempt.attempt_id} is not of host {report.incoming.host_id}"
        return Forbidden(message, hint=CREDENTIAL_IN_USE_HINT)
    if report.digest in run.report_digests:
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


def counts(run: ReportContext) -> bool:
    """Tell whether a report of an attempt still decides anything."""
    attempt, job = run.attempt, run.job
    over = attempt.state in (AttemptState.FINISHED, AttemptState.RETURNED)
    if job.kind is JobKind.CHECK and attempt.code == MOVED:
        # It says nothing of the phone where that is now: on another cable, and handled on the way.
        return False
    return not over and job.attempt_id == attempt.attempt_id and job.state is not JobState.FINISHED


def _is_batchable(report: ParsedReport, run: ReportContext) -> bool:
    """Return whether a run succeeded and neither repeats a block nor needs further rows to decide."""
    measured = _reading(report).measured
    is_under_way = run.attempt.state in LIVE_STATES and run.job.state is JobState.ACTIVE
    return counts(run) and is_under_way and measured is not None and not may_be_repeated(measured)


def _reading(report: ParsedReport) -> ReportReading:
    """Return what a report says that is not refused."""
    assert isinstance(report.reading, ReportReading)
    return report.reading


def _settle_alone(report: ParsedReport, run: ReportContext, context: SettlementContext) -> Settlement:
    if counts(run):
        assert context.consequences is not None
        return _settle_counted(report, run, context, context.consequences)
    attempt = run.attempt
    effects: tuple[Effect, ...] = _keep(report, run)
    if run.job.state is JobState.FINISHED and attempt.state in LIVE_STATES:
        # The run is over, and so was its job: an attempt that is still live ends with it.
        cause = "its job was cancelled before the report came"
        outcome = AttemptOutcome(outcome=Outcome.CANCELLED, message=cause)
        end = _end_attempt(report, attempt, outcome)
        # The report is kept, but it is not what ended the attempt.
        effects = (*effects, replace(end, event=AttemptEvent.CANCELLED, cause=cause, report_digest=None))
        attempt = replace(attempt, outcome=outcome.outcome, message=cause)
    return Settlement(answer=stored_answer(attempt), effects=effects)


def _settle_counted(
    report: ParsedReport, run: ReportContext, context: SettlementContext, further: ConsequenceContext
) -> Settlement:
    """Settle a report that counts, with what follows from it for more than its attempt and job."""
    attempt, job, now = run.attempt, run.job, report.incoming.at
    reading = _reading(report)
    outcome, incidents, noticed = _reassign_blame(attempt, reading.outcome, further, now=now)
    effects: list[Effect] = [*_keep(report, run), *noticed]
    if job.kind is JobKind.CHECK and further.check is not None and outcome.outcome is Outcome.SUCCEEDED:
        outcome, check_effects = reference_outcome(further.check)
        effects += check_effects
    job_effects = _decide_job(run, outcome, further.job, now=now)
    effects += [_end_attempt(report, attempt, outcome), *job_effects]
    if (measured := reading.measured) is not None:
        effects += placement_change(measured, context.last_places.get(measured.series.digest), now=now)
        effects.append(AddMeasurement(measured=measured))
        effects += repeated_block(further.block, job, measured, now=now)
    if job.kind is JobKind.CHECK and further.check is not None and _ends_job(job_effects, job):
        effects += end_of_check(further.check, job, outcome, now=now)
    if job.kind is JobKind.BENCHMARK and outcome.blame is Blame.DEVICE and further.health is not None:
        effects += device_health(further.health, attempt, job, outcome, job_effects, incidents, now=now)
        effects += check_after_loss(further.job, attempt.device_id, outcome.code, now=now)
    answer = ReportAnswer(
        attempt_id=attempt.attempt_id, counted=True, outcome=outcome.outcome, message=outcome.message
    )
    return Settlement(answer=answer, effects=tuple(effects))


def _decide_job(
    run: ReportContext, outcome: AttemptOutcome, history: RetryContext, *, now: datetime
) -> tuple[Consequence, ...]:
    """Finish a job, or queue it again. One that is queued again already stays so within its budget."""
    attempt, job, actor = run.attempt, run.job, f"agent:{run.attempt.host_id}"
    if outcome.outcome is not Outcome.INCONCLUSIVE:
        return (
            EndJob(at=now, job=job, outcome=outcome, actor=actor),
            *end_other_rounds(history, outcome, now=now, actor=actor),
        )
    this = FinishedAttempt(
        outcome=outcome.outcome, blame=outcome.blame, code=outcome.code, device_id=attempt.device_id
    )
    loss = DeviceLoss(device_id=attempt.device_id, code=outcome.code)
    losses = (*history.losses, loss) if outcome.blame is Blame.DEVICE else history.losses
    after = replace(history, tries=(*history.tries, this), losses=losses)
    return retry_or_end_job(after, job, outcome, now=now, actor=actor)


def _reassign_blame(
    attempt: AttemptRecord, outcome: AttemptOutcome, further: ConsequenceContext, *, now: datetime
) -> tuple[AttemptOutcome, tuple[Incident, ...], tuple[Consequence, ...]]:
    """Blame the host instead of the device where an incident or a move explains the failure."""
    incidents = () if further.health is None else further.health.incidents
    is_inconclusive = outcome.outcome is Outcome.INCONCLUSIVE
    if is_inconclusive and outcome.blame is Blame.DEVICE and attempt.code == MOVED:
        # The present holder of the phone ended the run there.
        return replace(outcome, blame=Blame.HOST, code=MOVED), incidents, ()
    if not (is_inconclusive and may_be_host_caused(outcome.blame, outcome.code)) or further.host is None:
        return outcome, incidents, ()
    noticed, open_incident = host_incident(further.host, now=now, failing=attempt.device_id)
    if open_incident is not None:
        others = (incident for incident in incidents if incident.incident_id != open_incident.incident_id)
        incidents = (*others, open_incident)
    if not hosts_doing(incidents, attempt):
        return outcome, incidents, noticed
    message = f"several devices of {attempt.host_id} failed at once: {outcome.message}"
    return replace(outcome, blame=Blame.HOST, code=HOST_INCIDENT, message=message), incidents, noticed


def _keep(report: ParsedReport, run: ReportContext) -> tuple[KeepReport, NotifyHosts]:
    """Keep the bytes of a report, and wake those to whom the end of its attempt may mean work."""
    attempt = run.attempt
    keep = KeepReport(
        at=report.incoming.at,
        attempt_id=attempt.attempt_id,
        digest=report.digest,
        body=report.incoming.body,
        counted=counts(run),
    )
    # Phones of other hosts may have waited for the CPU of a virtual one.
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
