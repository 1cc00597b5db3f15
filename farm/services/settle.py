"""Turns a report into what it means: outcome, measurement, health, retries; exactly once."""

from dataclasses import replace
from datetime import datetime

import structlog
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.engine import Connection

from farm.core.attempt import AttemptEvent, AttemptState
from farm.core.errors import Blame, Forbidden, InvalidInput, NotFound, ReportConflict
from farm.core.evidence import Evidence
from farm.core.ids import AttemptId, HostId, digest_of
from farm.core.incident import may_be_the_hosts
from farm.core.job import JobKind, JobState
from farm.core.measurement import Outcome, Reading, RunFailure
from farm.harness import device_check
from farm.services.adapters import adapter_of
from farm.services.checks import check_after_loss, watch_health
from farm.services.ending import Ending, end_cancelled, finish_job, retry_or_finish
from farm.services.incidents import HOST_INCIDENT, notice_trouble, was_the_hosts
from farm.services.measuring import record_measurement
from farm.services.refusals import ANOTHERS_HINT
from farm.services.takeover import MOVED
from farm.store import attempts, jobs
from farm.store import evidence as reports
from farm.store.attempts import Attempt
from farm.store.job_work import Work, work_of
from farm.store.jobs import Job
from farm.store.wakes import concerns
from farm.wire.agent import Report, ReportAnswer
from farm.wire.keepable import made_keepable

_REPORT = TypeAdapter(Report)
_BUGS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_log = structlog.get_logger(__name__)


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
    attempt = attempts.find_attempt(connection, attempt_id)
    if attempt is None:
        raise NotFound(f"there is no attempt {attempt_id}")
    if attempt.host_id != host_id:
        raise Forbidden(f"attempt {attempt_id} is not of host {host_id}", hint=ANOTHERS_HINT)
    digest = digest_of(body)
    if digest in reports.report_digests(connection, attempt_id):
        return _answer(attempt)
    if attempt.report_digest is not None:
        raise ReportConflict(f"attempt {attempt_id} was settled by report {attempt.report_digest}")
    evidence = _evidence(body, attempt)
    if attempt.cpu_domain is None:
        # Else phones of other hosts may have waited for that CPU.
        concerns(connection, [host_id])
    job = jobs.find_job(connection, attempt.job_id)
    counted = job is not None and _counts(attempt, job)
    reports.add_report(connection, attempt_id, digest=digest, body=body, counted=counted, now=now)
    if job is None or not counted:
        if job is not None and job.state is JobState.FINISHED:
            attempt = _end_with_job(connection, attempt, now=now)
        return _answer(attempt)
    ending = _settle_counted(connection, job, attempt, evidence, digest, now=now)
    return ReportAnswer(attempt_id=attempt_id, counted=True, outcome=ending.outcome, message=ending.message)


def _evidence(body: bytes, attempt: Attempt) -> Evidence:
    try:
        evidence = _REPORT.validate_json(made_keepable(body)).evidence
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(
            f"the report of attempt {attempt.attempt_id} is malformed at {where}: {first['msg']}",
            hint="run agent and farm of the same release",
        ) from error
    if evidence.fence != attempt.fence:
        raise InvalidInput(f"the report quotes fence {evidence.fence}, the attempt has {attempt.fence}")
    return evidence


def _counts(attempt: Attempt, job: Job) -> bool:
    over = attempt.state in (AttemptState.FINISHED, AttemptState.GIVEN_BACK)
    if job.kind is JobKind.CHECK and attempt.code == MOVED:
        # It says nothing of the phone where that is now: on another cable, and handled on the way.
        return False
    return not over and job.attempt_id == attempt.attempt_id and job.state is not JobState.FINISHED


def _end_with_job(connection: Connection, attempt: Attempt, *, now: datetime) -> Attempt:
    """The run is over, and so was its job: an attempt that is still live ends with it."""
    cause = "its job was cancelled before the report came"
    end_cancelled(connection, attempt, now=now, actor=f"agent:{attempt.host_id}", cause=cause)
    return attempts.find_attempt(connection, attempt.attempt_id) or attempt


def _answer(attempt: Attempt) -> ReportAnswer:
    return ReportAnswer(
        attempt_id=attempt.attempt_id,
        counted=attempt.report_digest is not None,
        outcome=attempt.outcome,
        message=attempt.message or "",
    )


def _settle_counted(
    connection: Connection, job: Job, attempt: Attempt, evidence: Evidence, digest: str, *, now: datetime
) -> Ending:
    work = work_of(connection, [job]).get(job.job_id)
    reading = _read(work, attempt, evidence)
    ending = _spared(connection, attempt, _ending(reading), now=now)
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
            "report_digest": digest,
        },
    )
    if work is not None and isinstance(reading, Reading):
        record_measurement(connection, job, work, attempt, evidence, reading, now=now)
    _end_job(connection, job, ending, now=now, actor=actor)
    if job.kind is JobKind.BENCHMARK and ending.blame is Blame.DEVICE:
        watch_health(connection, attempt.device_id, now=now)
        check_after_loss(connection, attempt.device_id, ending.code, now=now)
    return ending


def _spared(connection: Connection, attempt: Attempt, ending: Ending, *, now: datetime) -> Ending:
    """An ending, with the host to blame for what the phone could not help."""
    is_inconclusive = ending.outcome is Outcome.INCONCLUSIVE
    if is_inconclusive and ending.blame is Blame.DEVICE and attempt.code == MOVED:
        # Whoever has the phone now ended the run there.
        return replace(ending, blame=Blame.HOST, code=MOVED)
    if not (is_inconclusive and may_be_the_hosts(ending.blame, ending.code)):
        return ending
    notice_trouble(connection, attempt.host_id, now=now, failing=attempt.device_id)
    if not was_the_hosts(connection, attempt):
        return ending
    message = f"several phones of {attempt.host_id} were in trouble at once: {ending.message}"
    return replace(ending, blame=Blame.HOST, code=HOST_INCIDENT, message=message)


def _read(work: Work | None, attempt: Attempt, evidence: Evidence) -> Reading | RunFailure | None:
    """What the evidence says; None for a check that was passed."""
    try:
        if work is None:
            return device_check.failure(attempt.plan, evidence)
        return adapter_of(work.program).parse(attempt.plan, evidence)
    except _BUGS as error:
        # An adapter never raises. Should one do so, its phone must not be held until somebody mends it.
        _log.error(
            "adapter_failed", attempt_id=attempt.attempt_id, harness=attempt.plan.harness, exc_info=error
        )
        return RunFailure(
            code="harness.adapter_failed",
            outcome=Outcome.INCONCLUSIVE,
            blame=Blame.FARM,
            message=f"the adapter of {attempt.plan.harness} failed on this output: {type(error).__name__}",
            hint="the evidence is kept; report this with it",
        )


def _ending(reading: Reading | RunFailure | None) -> Ending:
    if not isinstance(reading, RunFailure):
        return Ending(outcome=Outcome.SUCCEEDED)
    message = f"{reading.message}: {reading.line}" if reading.line else reading.message
    return Ending(
        outcome=reading.outcome,
        blame=reading.blame,
        code=reading.code,
        message=f"{message} ({reading.hint})",
    )


def _end_job(connection: Connection, job: Job, ending: Ending, *, now: datetime, actor: str) -> None:
    if ending.outcome is not Outcome.INCONCLUSIVE:
        finish_job(connection, job, ending, now=now, actor=actor)
    else:
        # One that was queued again meanwhile stays so, unless this is what its budget does not allow.
        retry_or_finish(connection, job, ending, now=now, actor=actor)
