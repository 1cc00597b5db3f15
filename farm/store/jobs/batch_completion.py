"""Ends attempts and jobs that went well, many at once: each by compare-and-set, with its event rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest
from farm.core.errors import FarmBusy
from farm.core.jobs.attempt import AttemptEvent, AttemptState
from farm.core.jobs.job import JobEvent, JobState
from farm.core.operations.event import EventSubject
from farm.core.runs.measurement import Outcome
from farm.database.tables import attempts, jobs
from farm.store.jobs.attempts import Attempt
from farm.store.jobs.jobs import Job
from farm.store.operations.events import NewEvent, record_events


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessfulAttempt:
    """A live attempt that ended well, and its job, as they are now."""

    attempt: Attempt
    job: Job
    report_digest: Digest
    at: datetime


def finish_successful(connection: Connection, ended: Sequence[SuccessfulAttempt]) -> None:
    """Finish attempts and jobs as succeeded; the order of events is as if one came after the other.

    Raises:
        FarmBusy: one of them is no longer where it was; the caller undoes all of it.
    """
    moved = connection.execute(_finish_attempts_statement(), [_of_attempt(each) for each in ended]).rowcount
    moved += connection.execute(_finish_jobs_statement(), [_of_job(each) for each in ended]).rowcount
    if moved != 2 * len(ended):
        raise FarmBusy("an attempt or its job was moved by somebody who takes no turns", hint="try again")
    record_events(connection, [event for each in ended for event in _events(each)])


def _of_attempt(ended: SuccessfulAttempt) -> dict[str, object]:
    return {
        "of_attempt": ended.attempt.attempt_id,
        "state_before": ended.attempt.state,
        "digest": ended.report_digest,
        "ended_at": ended.at,
    }


def _of_job(ended: SuccessfulAttempt) -> dict[str, object]:
    return {
        "of_job": ended.job.job_id,
        "attempt_before": ended.attempt.attempt_id,
        "ended_at": ended.at,
    }


def _events(ended: SuccessfulAttempt) -> tuple[NewEvent, NewEvent]:
    actor = f"agent:{ended.attempt.host_id}"
    attempt = NewEvent(
        at=ended.at,
        actor=actor,
        kind=AttemptEvent.SETTLED,
        subject=EventSubject.ATTEMPT,
        subject_id=ended.attempt.attempt_id,
        from_state=ended.attempt.state,
        to_state=AttemptState.FINISHED,
        cause=Outcome.SUCCEEDED,
    )
    job = NewEvent(
        at=ended.at,
        actor=actor,
        kind=JobEvent.FINISHED,
        subject=EventSubject.JOB,
        subject_id=ended.job.job_id,
        from_state=JobState.ACTIVE,
        to_state=JobState.FINISHED,
        cause=Outcome.SUCCEEDED,
    )
    return attempt, job


@cache
def _finish_attempts_statement() -> sa.Update:
    return (
        attempts.update()
        .where(
            attempts.c.attempt_id == sa.bindparam("of_attempt"),
            attempts.c.state == sa.bindparam("state_before"),
        )
        .values(
            state=AttemptState.FINISHED,
            waiting_for=None,
            outcome=Outcome.SUCCEEDED,
            blame=None,
            code=None,
            message="",
            report_digest=sa.bindparam("digest"),
            finished_at=sa.bindparam("ended_at"),
        )
    )


@cache
def _finish_jobs_statement() -> sa.Update:
    return (
        jobs.update()
        .where(
            jobs.c.job_id == sa.bindparam("of_job"),
            jobs.c.state == JobState.ACTIVE,
            jobs.c.attempt_id == sa.bindparam("attempt_before"),
        )
        .values(
            state=JobState.FINISHED,
            outcome=Outcome.SUCCEEDED,
            code=None,
            message=None,
            finished_at=sa.bindparam("ended_at"),
        )
    )
