"""Decide what reports change, by what the farm knows of their attempts: pure, it reads and writes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from farm.core.base.ids import AttemptId, Digest
from farm.core.checks.incident import HOST_INCIDENT, Incident, may_be_host_caused
from farm.core.errors import Blame, FarmBusy, FarmError, Forbidden, NotFound, ReportConflict
from farm.core.errors.requests import CREDENTIAL_IN_USE_HINT
from farm.core.jobs.attempt import LIVE_STATES, AttemptEvent, AttemptOutcome, AttemptRecord, AttemptState
from farm.core.jobs.job import Job, JobKind, JobState
from farm.core.jobs.poison_job import DeviceLoss
from farm.core.jobs.retry import MOVED, FinishedAttempt
from farm.core.results.settle.check_outcome import end_of_check, reference_outcome
from farm.core.results.settle.consequences import (
    check_after_loss,
    device_health,
    end_of_job,
    host_trouble,
    hosts_doing,
    may_be_repeated,
    repeated_block,
)
from farm.core.results.settle.effects import (
    AddMeasurement,
    Effect,
    EndAttempt,
    EndJob,
    KeepReport,
    NotifyHosts,
    RowEffect,
    Settlement,
    SettlementAnswer,
)
from farm.core.results.settle.new_measurement import NewMeasurement
from farm.core.results.settle.placement_change import placement_effects
from farm.core.results.settle.report import ParsedReport, ReportReading
from farm.core.results.settle.report_context import (
    ConsequenceContext,
    ReportContext,
    RetryContext,
    SettlementContext,
)
from farm.core.runs.measurement import Outcome


def evaluate(context: SettlementContext, reports: Sequence[ParsedReport]) -> tuple[Settlement, ...]:
    """Settle the first reports, one at least: good runs as far as nothing else comes between, or one other.

    What comes later may depend on what these change, and takes a context that is read after that.
    """
    settlements: list[Settlement] = []
    settled: set[AttemptId] = set()
    placed: set[Digest] = set()
    for report in reports:
        attempt_id = report.incoming.attempt_id
        if attempt_id in settled:
            # The second one meets what the first has made of the attempt.
            break
        found = context.reports.get(attempt_id)
        try:
            answer = stored_answer_to(report, found)
        except FarmError as refusal:
            settlements.append(Settlement(answer=refusal))
            continue
        if answer is not None:
            settlements.append(Settlement(answer=answer))
            continue
        assert found is not None
        if not _is_plain(report, found):
            if not settled:
                settlements.append(_settle_alone(report, found, context))
            break
        measured = _reading(report).measured
        assert measured is not None
        if measured.reading.placement is not None:
            if measured.series.digest in placed:
                # Where it ran is compared with the last one's place, which is not stored yet.
                break
            placed.add(measured.series.digest)
        settled.add(attempt_id)
        settlements.append(_settle_good(report, found, measured, context))
    return tuple(settlements)


def with_consequences(
    reports: Sequence[ParsedReport], contexts: Mapping[AttemptId, ReportContext]
) -> tuple[ParsedReport, ReportContext] | None:
    """Return the report that is settled next, if it counts and more follows than the end of its job."""
    for report in reports:
        context = contexts.get(report.incoming.attempt_id)
        try:
            if stored_answer_to(report, context) is not None:
                continue
        except FarmError:
            continue
        assert context is not None
        alone = counts(context) and not _is_plain(report, context)
        return (report, context) if alone else None
    return None


def stored_answer_to(report: ParsedReport, found: ReportContext | None) -> SettlementAnswer | None:
    """Return the stored answer to a report that came before; None for one that is to be settled.

    Raises:
        NotFound: there is no such attempt.
        Forbidden: the attempt is another host's.
        ReportConflict: the attempt was settled by another report.
        InvalidInput: the body is no report, or quotes another fencing token.
        FarmBusy: it was not parsed, because it seemed to be refused.
    """
    if found is None:
        raise NotFound(f"there is no attempt {report.incoming.attempt_id}")
    attempt = found.attempt
    if attempt.host_id != report.incoming.host_id:
        message = f"attempt {attempt.attempt_id} is not of host {report.incoming.host_id}"
        raise Forbidden(message, hint=CREDENTIAL_IN_USE_HINT)
    if report.digest in found.report_digests:
        return stored_answer(attempt)
    if attempt.report_digest is not None:
        raise ReportConflict(f"attempt {attempt.attempt_id} was settled by report {attempt.report_digest}")
    if isinstance(report.reading, FarmError):
        raise report.reading
    if report.reading is None:
        raise FarmBusy(f"attempt {attempt.attempt_id} came up while its report was parsed", hint="try again")
    return None


def stored_answer(attempt: AttemptRecord) -> SettlementAnswer:
    """Return what became of an attempt, for a report that changes nothing."""
    return SettlementAnswer(
        attempt_id=attempt.attempt_id,
        counted=attempt.report_digest is not None,
        outcome=attempt.outcome,
        message=attempt.message or "",
    )


def counts(found: ReportContext) -> bool:
    """Tell whether a report of an attempt still decides anything."""
    attempt, job = found.attempt, found.job
    over = attempt.state in (AttemptState.FINISHED, AttemptState.RETURNED)
    if job.kind is JobKind.CHECK and attempt.code == MOVED:
        # It says nothing of the phone where that is now: on another cable, and handled on the way.
        return False
    return not over and job.attempt_id == attempt.attempt_id and job.state is not JobState.FINISHED


def _is_plain(report: ParsedReport, found: ReportContext) -> bool:
    """Tell whether a run ended well and nothing follows from it but the end of its attempt and job."""
    measured = _reading(report).measured
    is_under_way = found.attempt.state in LIVE_STATES and found.job.state is JobState.ACTIVE
    return counts(found) and is_under_way and measured is not None and not may_be_repeated(measured)


def _reading(report: ParsedReport) -> ReportReading:
    """Return what a report says that is not refused."""
    assert isinstance(report.reading, ReportReading)
    return report.reading


def _settle_good(
    report: ParsedReport, found: ReportContext, measured: NewMeasurement, context: SettlementContext
) -> Settlement:
    attempt, now = found.attempt, report.incoming.at
    outcome, actor = _reading(report).outcome, f"agent:{attempt.host_id}"
    return Settlement(
        answer=_answer_to(attempt, outcome),
        effects=(
            *_keep(report, found),
            _end_attempt(report, attempt, outcome),
            EndJob(at=now, job=found.job, outcome=outcome, actor=actor),
            *placement_effects(measured, context.last_places.get(measured.series.digest), now=now),
            AddMeasurement(measured=measured),
        ),
    )


def _settle_alone(report: ParsedReport, found: ReportContext, context: SettlementContext) -> Settlement:
    if counts(found):
        assert context.consequences is not None
        return _settle_counted(report, found, context, context.consequences)
    attempt = found.attempt
    effects: tuple[Effect, ...] = _keep(report, found)
    if found.job.state is JobState.FINISHED and attempt.state in LIVE_STATES:
        # The run is over, and so was its job: an attempt that is still live ends with it.
        cause = "its job was cancelled before the report came"
        outcome = AttemptOutcome(outcome=Outcome.CANCELLED, message=cause)
        cancelled = EndAttempt(
            at=report.incoming.at,
            attempt=attempt,
            event=AttemptEvent.CANCELLED,
            outcome=outcome,
            actor=f"agent:{attempt.host_id}",
            cause=cause,
        )
        effects = (*effects, cancelled)
        attempt = replace(attempt, outcome=outcome.outcome, message=cause)
    return Settlement(answer=stored_answer(attempt), effects=effects)


def _settle_counted(
    report: ParsedReport, found: ReportContext, context: SettlementContext, known: ConsequenceContext
) -> Settlement:
    """Settle a report by itself: a run that failed, a measurement that is not valid, a check."""
    attempt, job, now = found.attempt, found.job, report.incoming.at
    reading = _reading(report)
    outcome, incidents, noticed = _spared(attempt, reading.outcome, known, now=now)
    effects: list[Effect] = [*_keep(report, found), *noticed]
    if job.kind is JobKind.CHECK and known.check is not None and outcome.outcome is Outcome.SUCCEEDED:
        outcome, kept = reference_outcome(known.check)
        effects += kept
    effects.append(_end_attempt(report, attempt, outcome))
    if reading.measured is not None:
        measured = reading.measured
        effects += placement_effects(measured, context.last_places.get(measured.series.digest), now=now)
        effects.append(AddMeasurement(measured=measured))
        effects += repeated_block(known.block, job, measured, now=now)
    ends = _job_ends(found, outcome, known.job, now=now)
    effects += ends
    if job.kind is JobKind.CHECK and known.check is not None and _ends(ends, job):
        effects += end_of_check(known.check, job, outcome, now=now)
    if job.kind is JobKind.BENCHMARK and outcome.blame is Blame.DEVICE and known.health is not None:
        effects += device_health(known.health, attempt, job, outcome, ends, incidents, now=now)
        effects += check_after_loss(known.job, attempt.device_id, outcome.code, now=now)
    return Settlement(answer=_answer_to(attempt, outcome), effects=tuple(effects))


def _job_ends(
    found: ReportContext, outcome: AttemptOutcome, known: RetryContext, *, now: datetime
) -> tuple[RowEffect, ...]:
    """Finish a job, or queue it again. One that was queued again meanwhile stays so within its budget."""
    attempt, job, actor = found.attempt, found.job, f"agent:{found.attempt.host_id}"
    if outcome.outcome is not Outcome.INCONCLUSIVE:
        return (EndJob(at=now, job=job, outcome=outcome, actor=actor),)
    this = FinishedAttempt(
        outcome=outcome.outcome, blame=outcome.blame, code=outcome.code, device_id=attempt.device_id
    )
    loss = DeviceLoss(device_id=attempt.device_id, code=outcome.code)
    losses = (*known.losses, loss) if outcome.blame is Blame.DEVICE else known.losses
    after = replace(known, tries=(*known.tries, this), losses=losses)
    return end_of_job(after, job, outcome, now=now, actor=actor)


def _spared(
    attempt: AttemptRecord, outcome: AttemptOutcome, known: ConsequenceContext, *, now: datetime
) -> tuple[AttemptOutcome, tuple[Incident, ...], tuple[RowEffect, ...]]:
    """Return an outcome with the host to blame for what the device could not help; its incidents; effects."""
    incidents = () if known.health is None else known.health.incidents
    is_inconclusive = outcome.outcome is Outcome.INCONCLUSIVE
    if is_inconclusive and outcome.blame is Blame.DEVICE and attempt.code == MOVED:
        # Whoever has the phone now ended the run there.
        return replace(outcome, blame=Blame.HOST, code=MOVED), incidents, ()
    if not (is_inconclusive and may_be_host_caused(outcome.blame, outcome.code)) or known.host is None:
        return outcome, incidents, ()
    noticed, open_incident = host_trouble(known.host, now=now, failing=attempt.device_id)
    if open_incident is not None:
        others = (each for each in incidents if each.incident_id != open_incident.incident_id)
        incidents = (*others, open_incident)
    if not hosts_doing(incidents, attempt):
        return outcome, incidents, noticed
    message = f"several phones of {attempt.host_id} were in trouble at once: {outcome.message}"
    return replace(outcome, blame=Blame.HOST, code=HOST_INCIDENT, message=message), incidents, noticed


def _keep(report: ParsedReport, found: ReportContext) -> tuple[RowEffect, ...]:
    """Keep the bytes of a report, and wake those to whom the end of its attempt may mean work."""
    attempt = found.attempt
    kept = KeepReport(
        at=report.incoming.at,
        attempt_id=attempt.attempt_id,
        digest=report.digest,
        body=report.incoming.body,
        counted=counts(found),
    )
    # Phones of other hosts may have waited for the CPU of a virtual one.
    hosts = frozenset({attempt.host_id}) if attempt.cpu_domain is None else None
    return kept, NotifyHosts(hosts=hosts)


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


def _ends(effects: Sequence[RowEffect], job: Job) -> bool:
    return any(isinstance(each, EndJob) and each.job.job_id == job.job_id for each in effects)


def _answer_to(attempt: AttemptRecord, outcome: AttemptOutcome) -> SettlementAnswer:
    return SettlementAnswer(
        attempt_id=attempt.attempt_id, counted=True, outcome=outcome.outcome, message=outcome.message
    )
