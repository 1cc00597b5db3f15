"""How an attempt ends without a report, and what becomes of its job then."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.errors import Blame
from farm.core.jobs.attempt import AttemptEvent, AttemptState
from farm.core.jobs.deferral import JOB_DEFERRED
from farm.core.jobs.job import JobEvent, JobKind
from farm.core.jobs.poison_job import POISON_JOB
from farm.core.jobs.retry import MAX_RETURNS, may_retry
from farm.core.runs.measurement import Outcome
from farm.services.checks.checks import apply_check_outcome
from farm.services.jobs import poison_jobs
from farm.store.jobs import attempts, jobs
from farm.store.jobs.attempts import Attempt
from farm.store.jobs.jobs import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """How an attempt or a job ended. `blame` is None when it ended well, or when nothing ran."""

    outcome: Outcome
    blame: Blame | None = None
    code: str | None = None
    message: str = ""


def return_attempt(
    connection: Connection,
    attempt: Attempt,
    *,
    now: datetime,
    actor: str,
    reason: str,
    code: str | None = None,
) -> bool:
    """Nothing ran: the job is queued again at no cost, unless it was given back too often.

    Nor is what made two phones go away meanwhile. With code DEFER it pauses.
    """
    moved = attempts.move_attempt(
        connection,
        attempt,
        AttemptEvent.RETURNED,
        now=now,
        actor=actor,
        cause=reason,
        values={"message": reason, "code": code},
    )
    job = jobs.find_job(connection, attempt.job_id)
    if not moved or job is None or job.attempt_id != attempt.attempt_id:
        return moved
    given_back = attempts.count_attempts(connection, job.job_id, AttemptState.RETURNED)
    if killed := poison_jobs.find_lost_devices(connection, job):
        _finish_poison_job(connection, job, killed, now=now, actor=actor)
    elif given_back < MAX_RETURNS:
        jobs.move_job(connection, job, JobEvent.REQUEUED, now=now, actor=actor, cause=reason)
    else:
        message = f"put off {given_back} times, last because {reason}"
        ending = AttemptOutcome(outcome=Outcome.INCONCLUSIVE, code=JOB_DEFERRED, message=message)
        finish_job(connection, job, ending, now=now, actor=actor)
    return moved


def lose_attempt(
    connection: Connection, attempt: Attempt, *, now: datetime, cause: str, code: str = "host.lost"
) -> bool:
    """Nothing more is heard of the attempt: the job is queued again within its budget. A late report still
    counts while this attempt is the job's current one."""
    ending = AttemptOutcome(outcome=Outcome.INCONCLUSIVE, blame=Blame.HOST, code=code, message=cause)
    moved = attempts.move_attempt(
        connection,
        attempt,
        AttemptEvent.LOST,
        now=now,
        actor="farm",
        cause=cause,
        values={"outcome": ending.outcome, "blame": ending.blame, "code": code, "message": cause},
    )
    job = jobs.find_job(connection, attempt.job_id)
    if moved and job is not None and job.attempt_id == attempt.attempt_id:
        retry_or_finish(connection, job, ending, now=now, actor="farm")
    return moved


def finish_cancelled_attempt(
    connection: Connection, attempt: Attempt, *, now: datetime, actor: str, cause: str
) -> None:
    """End a live attempt of a cancelled job. Its phone gets no work before its clean-up is confirmed."""
    attempts.move_attempt(
        connection,
        attempt,
        AttemptEvent.CANCELLED,
        now=now,
        actor=actor,
        cause=cause,
        values={"outcome": Outcome.CANCELLED, "message": cause},
    )


def retry_or_finish(
    connection: Connection, job: Job, ending: AttemptOutcome, *, now: datetime, actor: str
) -> None:
    """Queue a job again after an inconclusive attempt, or finish it when its budget is used up.

    What has made two phones go away is not tried on a third one.
    """
    if killed := poison_jobs.find_lost_devices(connection, job):
        _finish_poison_job(connection, job, killed, now=now, actor=actor)
    elif may_retry(attempts.past_attempts(connection, job.job_id)):
        jobs.move_job(connection, job, JobEvent.REQUEUED, now=now, actor=actor, cause=ending.message)
    else:
        finish_job(connection, job, ending, now=now, actor=actor)


def _finish_poison_job(
    connection: Connection, job: Job, killed: Sequence[DeviceId], *, now: datetime, actor: str
) -> None:
    ending = _poison_outcome(killed)
    finish_job(connection, job, ending, now=now, actor=actor)
    for job_id in poison_jobs.other_queued_jobs(connection, job):
        other = jobs.find_job(connection, job_id)
        if other is not None:
            finish_job(connection, other, ending, now=now, actor=actor)
    poison_jobs.check_lost_devices(connection, killed, now=now)


def _poison_outcome(killed: Sequence[DeviceId]) -> AttemptOutcome:
    message = poison_jobs.poison_message(killed)
    return AttemptOutcome(outcome=Outcome.FAILED, blame=Blame.VARIANT, code=POISON_JOB, message=message)


def end_queued_poison_jobs(connection: Connection, matrix_id: MatrixId, *, now: datetime) -> None:
    """End what was queued of work that is known to make phones go away, before it reaches the next."""
    for job in poison_jobs.queued_poison_jobs(connection, matrix_id):
        if killed := poison_jobs.find_lost_devices(connection, job):
            finish_job(connection, job, _poison_outcome(killed), now=now, actor="farm")


def finish_job(
    connection: Connection, job: Job, ending: AttemptOutcome, *, now: datetime, actor: str
) -> None:
    """End a job for good; the end of a check is the phone's health."""
    finished = jobs.move_job(
        connection,
        job,
        JobEvent.FINISHED,
        now=now,
        actor=actor,
        cause=ending.outcome if ending.code is None else f"{ending.outcome}: {ending.code}",
        values={"outcome": ending.outcome, "code": ending.code, "message": ending.message or None},
    )
    if finished and job.kind is JobKind.CHECK:
        apply_check_outcome(
            connection, job.device_id, ending.outcome, ending.blame, now=now, cause=ending.message
        )
