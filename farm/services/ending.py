"""How an attempt ends without a report, and what becomes of its job then."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.attempt import AttemptEvent, AttemptState
from farm.core.errors import Blame
from farm.core.job import JobEvent
from farm.core.measurement import Outcome
from farm.core.retry import MAX_GIVE_BACKS, may_retry
from farm.store import attempts, jobs
from farm.store.attempts import Attempt
from farm.store.jobs import Job


def give_back(connection: Connection, attempt: Attempt, *, now: datetime, actor: str, reason: str) -> bool:
    """Nothing ran: the job is queued again at no cost, unless it was given back too often."""
    moved = attempts.move_attempt(
        connection,
        attempt,
        AttemptEvent.GIVEN_BACK,
        now=now,
        actor=actor,
        cause=reason,
        values={"message": reason},
    )
    job = jobs.find_job(connection, attempt.job_id)
    if not moved or job is None or job.attempt_id != attempt.attempt_id:
        return moved
    given_back = [
        tried
        for tried in attempts.attempts_of(connection, job.job_id)
        if tried.state is AttemptState.GIVEN_BACK
    ]
    if len(given_back) < MAX_GIVE_BACKS:
        jobs.move_job(connection, job, JobEvent.REQUEUED, now=now, actor=actor, cause=reason)
    else:
        message = f"put off {len(given_back)} times, last because {reason}"
        finish_job(
            connection, job, Outcome.INCONCLUSIVE, code="job.put_off", message=message, now=now, actor=actor
        )
    return moved


def lose(connection: Connection, attempt: Attempt, *, now: datetime, cause: str) -> bool:
    """The attempt's session is gone: the job is queued again within its budget. A late report still counts
    while this attempt is the job's current one."""
    code = "host.lost"
    moved = attempts.move_attempt(
        connection,
        attempt,
        AttemptEvent.LOST,
        now=now,
        actor="farm",
        cause=cause,
        values={"outcome": Outcome.INCONCLUSIVE, "blame": Blame.HOST, "code": code, "message": cause},
    )
    job = jobs.find_job(connection, attempt.job_id)
    if moved and job is not None and job.attempt_id == attempt.attempt_id:
        retry_or_finish(connection, job, code=code, message=cause, now=now, actor="farm")
    return moved


def retry_or_finish(
    connection: Connection, job: Job, *, code: str, message: str, now: datetime, actor: str
) -> None:
    """Queue a job again after an inconclusive attempt, or finish it when its budget is used up."""
    if may_retry(attempts.past_tries(connection, job.job_id)):
        jobs.move_job(connection, job, JobEvent.REQUEUED, now=now, actor=actor, cause=message)
    else:
        finish_job(connection, job, Outcome.INCONCLUSIVE, code=code, message=message, now=now, actor=actor)


def finish_job(
    connection: Connection,
    job: Job,
    outcome: Outcome,
    *,
    code: str | None,
    message: str | None,
    now: datetime,
    actor: str,
) -> None:
    """End a job for good."""
    jobs.move_job(
        connection,
        job,
        JobEvent.FINISHED,
        now=now,
        actor=actor,
        cause=outcome if code is None else f"{outcome}: {code}",
        values={"outcome": outcome, "code": code, "message": message},
    )
