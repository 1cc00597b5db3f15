"""Turns reports into what they mean: outcomes, measurements, health, retries; each exactly once.

Reports that come together are settled in one transaction, as if one came after the other. Good runs that
follow each other are written by a handful of statements, however many they are; what has further consequences
is settled alone, by what is known after all before it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, HostId
from farm.core.checks.incident import may_be_host_caused
from farm.core.errors import Blame, FarmError
from farm.core.jobs.attempt import AttemptEvent
from farm.core.jobs.job import JobKind, JobState
from farm.core.runs.measurement import Outcome
from farm.database.notifications import notify_all_hosts, notify_hosts, notify_no_other_hosts
from farm.services.agents.takeover import DEVICE_MOVED
from farm.services.checks.checks import queue_check_after_loss, suspect_failing_device
from farm.services.checks.incidents import HOST_INCIDENT, detect_incident, is_host_fault
from farm.services.checks.reference_outcome import by_reference_run
from farm.services.jobs.termination import (
    AttemptOutcome,
    finish_cancelled_attempt,
    finish_job,
    retry_or_finish,
)
from farm.services.results.evaluation import (
    ReceivedReport,
    ReportEvaluation,
    ValidReport,
    answer_to,
    evaluate_report,
    stored_answer,
    validate_report,
)
from farm.services.results.placement_changes import placement_changes, record_placement_changes
from farm.services.results.recording import record_measurement
from farm.store.jobs import attempts, batch_completion
from farm.store.jobs.attempts import Attempt
from farm.store.jobs.batch_completion import SuccessfulAttempt
from farm.store.jobs.context import job_contexts
from farm.store.jobs.jobs import Job
from farm.store.results import evidence as evidence_store
from farm.store.results.evidence import NewReport
from farm.store.results.measurements import add_measurements
from farm.store.results.report_context import report_contexts
from farm.wire.agents.protocol import ReportAnswer


def settle(
    connection: Connection, host_id: HostId, attempt_id: AttemptId, body: bytes, *, now: datetime
) -> ReportAnswer:
    """Settle an attempt by its report. The same bytes again get the same answer and change nothing.

    A report of an attempt that is no longer its job's current one is kept and not counted.

    Raises:
        NotFound: there is no such attempt.
        Forbidden: the attempt is another host's.
        ReportConflict: the attempt was settled by another report.
        InvalidInput: the body is no report, or quotes another fencing token.
    """
    arrived = ReceivedReport(host_id=host_id, attempt_id=attempt_id, body=body, at=now)
    (answer,) = settle_batch(connection, [arrived])
    if isinstance(answer, FarmError):
        raise answer
    return answer


def settle_batch(connection: Connection, arrived: Sequence[ReceivedReport]) -> list[ReportAnswer | FarmError]:
    """Settle reports in their order; for each its answer, or what `settle` would raise, harming no other."""
    # What is refused, or came before, is no work for anybody.
    notify_no_other_hosts(connection)
    answers: list[ReportAnswer | FarmError] = []
    while rest := arrived[len(answers) :]:
        answers += _settle_first(connection, rest)
    return answers


def _settle_first(
    connection: Connection, arrived: Sequence[ReceivedReport]
) -> list[ReportAnswer | FarmError]:
    """Settle good runs as far as nothing else comes between, or else one report; answers to those."""
    standings = report_contexts(connection, {each.attempt_id for each in arrived})
    unsettled = [each.job for each in standings.values() if each.attempt.report_digest is None]
    work = job_contexts(connection, unsettled)
    answers: list[ReportAnswer | FarmError] = []
    good: dict[AttemptId, ReportEvaluation] = {}
    for each in arrived:
        if each.attempt_id in good:
            # The second one meets what the first has made of the attempt.
            break
        try:
            kept = validate_report(each, standings.get(each.attempt_id))
        except FarmError as refusal:
            answers.append(refusal)
            continue
        if isinstance(kept, ReportAnswer):
            answers.append(kept)
            continue
        means = evaluate_report(kept, work) if kept.counted else None
        if means is None or not means.is_plain:
            if not good:
                answers.append(_settle_alone(connection, kept, means))
            break
        good[each.attempt_id] = means
        answers.append(answer_to(kept.attempt, means.ending))
    _record_good(connection, list(good.values()))
    return answers


def _record_good(connection: Connection, verdicts: Sequence[ReportEvaluation]) -> None:
    """Keep good reports, and end what they report of."""
    if not verdicts:
        return
    measured = [each.measured for each in verdicts if each.measured is not None]
    changes = placement_changes(connection, measured)
    if changes and len(verdicts) > 1:
        # It is seldom, and what is told of one comes before what is told of the next.
        for each in verdicts:
            _record_good(connection, [each])
        return
    _keep(connection, [each.taken for each in verdicts])
    batch_completion.finish_successful(
        connection,
        [
            SuccessfulAttempt(
                attempt=kept.attempt, job=kept.job, report_digest=kept.digest, at=kept.arrived.at
            )
            for kept in (each.taken for each in verdicts)
        ],
    )
    record_placement_changes(connection, changes, now=verdicts[0].taken.arrived.at)
    add_measurements(connection, measured)


def _settle_alone(connection: Connection, kept: ValidReport, means: ReportEvaluation | None) -> ReportAnswer:
    _keep(connection, [kept])
    if means is not None:
        return answer_to(kept.attempt, _settle_counted(connection, means))
    attempt = kept.attempt
    if kept.job.state is JobState.FINISHED:
        attempt = _end_with_job(connection, attempt, now=kept.arrived.at)
    return stored_answer(attempt)


def _keep(connection: Connection, kept: Sequence[ValidReport]) -> None:
    """Keep the bytes of reports, and wake those to whom their ends may mean work."""
    evidence_store.add_reports(
        connection,
        [
            NewReport(
                attempt_id=each.attempt.attempt_id,
                digest=each.digest,
                body=each.arrived.body,
                counted=each.counted,
                at=each.arrived.at,
            )
            for each in kept
        ],
    )
    if all(each.attempt.cpu_domain is None for each in kept):
        notify_hosts(connection, {each.attempt.host_id for each in kept})
    else:
        # Phones of other hosts may have waited for that CPU.
        notify_all_hosts(connection)


def _end_with_job(connection: Connection, attempt: Attempt, *, now: datetime) -> Attempt:
    """The run is over, and so was its job: an attempt that is still live ends with it."""
    cause = "its job was cancelled before the report came"
    finish_cancelled_attempt(connection, attempt, now=now, actor=f"agent:{attempt.host_id}", cause=cause)
    return attempts.find_attempt(connection, attempt.attempt_id) or attempt


def _settle_counted(connection: Connection, means: ReportEvaluation) -> AttemptOutcome:
    job, attempt, now = means.taken.job, means.taken.attempt, means.taken.arrived.at
    ending = _blame_host_for_incident(connection, attempt, means.ending, now=now)
    if means.work is None and ending.outcome is Outcome.SUCCEEDED:
        ending = by_reference_run(connection, attempt, means.taken.evidence, now=now) or ending
    actor = f"agent:{attempt.host_id}"
    attempts.move_attempt(
        connection,
        attempt,
        AttemptEvent.SETTLED,
        now=now,
        actor=actor,
        cause=ending.code or ending.outcome,
        values={
            "outcome": ending.outcome,
            "blame": ending.blame,
            "code": ending.code,
            "message": ending.message,
            "report_digest": means.taken.digest,
        },
    )
    if means.work is not None and means.measured is not None:
        record_measurement(connection, job, means.work, means.measured, now=now)
    _end_job(connection, job, ending, now=now, actor=actor)
    if job.kind is JobKind.BENCHMARK and ending.blame is Blame.DEVICE:
        suspect_failing_device(connection, attempt.device_id, now=now)
        queue_check_after_loss(connection, attempt.device_id, ending.code, now=now)
    return ending


def _blame_host_for_incident(
    connection: Connection, attempt: Attempt, ending: AttemptOutcome, *, now: datetime
) -> AttemptOutcome:
    """An ending, with the host to blame for what the phone could not help."""
    is_inconclusive = ending.outcome is Outcome.INCONCLUSIVE
    if is_inconclusive and ending.blame is Blame.DEVICE and attempt.code == DEVICE_MOVED:
        # Whoever has the phone now ended the run there.
        return replace(ending, blame=Blame.HOST, code=DEVICE_MOVED)
    if not (is_inconclusive and may_be_host_caused(ending.blame, ending.code)):
        return ending
    detect_incident(connection, attempt.host_id, now=now, failing=attempt.device_id)
    if not is_host_fault(connection, attempt):
        return ending
    message = f"several phones of {attempt.host_id} were in trouble at once: {ending.message}"
    return replace(ending, blame=Blame.HOST, code=HOST_INCIDENT, message=message)


def _end_job(connection: Connection, job: Job, ending: AttemptOutcome, *, now: datetime, actor: str) -> None:
    if ending.outcome is not Outcome.INCONCLUSIVE:
        finish_job(connection, job, ending, now=now, actor=actor)
    else:
        # One that was queued again meanwhile stays so, unless this is what its budget does not allow.
        retry_or_finish(connection, job, ending, now=now, actor=actor)
