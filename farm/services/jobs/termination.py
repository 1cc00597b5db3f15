"""Ends of attempts without a report, and their consequences for the job."""

from farm.core.errors import ArtifactExpired, Blame
from farm.core.jobs.attempt import AttemptEvent, AttemptOutcome, AttemptRecord, AttemptState
from farm.core.jobs.job import Job, JobEvent
from farm.core.jobs.retry import JOB_DEFERRED, MAX_RETURNS, poisoned_devices
from farm.core.results.settle.consequences import end_job, end_poison_jobs, retry_or_end_job
from farm.core.runs.measurement import Outcome
from farm.database.transaction import Tx
from farm.store.jobs import attempts, jobs
from farm.store.results.settle.effects import write_consequences
from farm.store.results.settle.report_context import job_context


def return_attempt(tx: Tx, attempt: AttemptRecord, *, reason: str, code: str | None = None) -> bool:
    """Return an attempt that did not run: its job is queued again at no cost, but not too often.

    A job that made two devices go away in between is not queued again. With code DEFER it pauses.
    """
    moved = attempts.move_attempt(
        tx, attempt, AttemptEvent.RETURNED, cause=reason, values={"message": reason, "code": code}
    )
    job = jobs.find_job(tx.connection, attempt.job_id)
    if not moved or job is None or job.attempt_id != attempt.attempt_id:
        return moved
    return_count = attempts.count_attempts(tx.connection, job.job_id, AttemptState.RETURNED)
    context = job_context(tx.connection, job)
    if killed := poisoned_devices(context.losses):
        write_consequences(tx.connection, end_poison_jobs(context, job, killed, now=tx.now, actor=tx.actor))
    elif lost := attempts.expired_files(tx.connection, attempt.attempt_id):
        # It would pause at the head of its device's queue, and no other job could run.
        message = f"the farm no longer has the file {', '.join(lost)}, which it needs"
        outcome = AttemptOutcome(
            outcome=Outcome.INCONCLUSIVE, blame=Blame.FARM, code=ArtifactExpired.code, message=message
        )
        write_consequences(tx.connection, end_job(job, outcome, now=tx.now, actor=tx.actor))
    elif return_count < MAX_RETURNS:
        jobs.move_job(tx, job, JobEvent.REQUEUED, cause=reason)
    else:
        message = f"deferred {return_count} times, last because {reason}"
        outcome = AttemptOutcome(outcome=Outcome.INCONCLUSIVE, code=JOB_DEFERRED, message=message)
        write_consequences(tx.connection, end_job(job, outcome, now=tx.now, actor=tx.actor))
    return moved


def lose_attempt(tx: Tx, attempt: AttemptRecord, *, cause: str, code: str = "host.lost") -> bool:
    """Lose an attempt without a report: the job is queued again within its budget. A late report still
    counts while this attempt is the job's current one."""
    ending = AttemptOutcome(outcome=Outcome.INCONCLUSIVE, blame=Blame.HOST, code=code, message=cause)
    moved = attempts.move_attempt(
        tx.by("farm"),
        attempt,
        AttemptEvent.LOST,
        cause=cause,
        values={"outcome": ending.outcome, "blame": ending.blame, "code": code, "message": cause},
    )
    job = jobs.find_job(tx.connection, attempt.job_id)
    if moved and job is not None and job.attempt_id == attempt.attempt_id:
        retry_or_finish(tx.by("farm"), job, ending)
    return moved


def finish_cancelled_attempt(tx: Tx, attempt: AttemptRecord, *, cause: str) -> None:
    """End a live attempt of a cancelled job. Its device gets no work before its clean-up is confirmed."""
    attempts.move_attempt(
        tx,
        attempt,
        AttemptEvent.CANCELLED,
        cause=cause,
        values={"outcome": Outcome.CANCELLED, "message": cause},
    )


def retry_or_finish(tx: Tx, job: Job, outcome: AttemptOutcome) -> None:
    """Queue a job again after an inconclusive attempt, or finish it when its budget is used up.

    A job that made two devices go away is not tried on a third one.
    """
    context = job_context(tx.connection, job)
    write_consequences(tx.connection, retry_or_end_job(context, job, outcome, now=tx.now, actor=tx.actor))
