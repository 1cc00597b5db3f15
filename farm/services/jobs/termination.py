"""How an attempt ends without a report, and what becomes of its job then."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.errors import Blame
from farm.core.jobs.attempt import Attempt, AttemptEvent, AttemptOutcome, AttemptState
from farm.core.jobs.deferral import JOB_DEFERRED
from farm.core.jobs.job import Job, JobEvent
from farm.core.jobs.poison_job import poisoned_devices
from farm.core.jobs.retry import MAX_RETURNS
from farm.core.results.settle.consequences import end_of_job, job_ends, poison_job_ends
from farm.core.runs.measurement import Outcome
from farm.store.jobs import attempts, jobs
from farm.store.results.settle.consequences import write_consequences
from farm.store.results.settle.report_context import job_context


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
    known = job_context(connection, job)
    if killed := poisoned_devices(known.losses):
        write_consequences(connection, poison_job_ends(known, job, killed, now=now, actor=actor))
    elif given_back < MAX_RETURNS:
        jobs.move_job(connection, job, JobEvent.REQUEUED, now=now, actor=actor, cause=reason)
    else:
        message = f"put off {given_back} times, last because {reason}"
        outcome = AttemptOutcome(outcome=Outcome.INCONCLUSIVE, code=JOB_DEFERRED, message=message)
        write_consequences(connection, job_ends(job, outcome, now=now, actor=actor))
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
    connection: Connection, job: Job, outcome: AttemptOutcome, *, now: datetime, actor: str
) -> None:
    """Queue a job again after an inconclusive attempt, or finish it when its budget is used up.

    What has made two phones go away is not tried on a third one.
    """
    known = job_context(connection, job)
    write_consequences(connection, end_of_job(known, job, outcome, now=now, actor=actor))
