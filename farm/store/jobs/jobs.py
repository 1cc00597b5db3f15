"""Jobs and their transitions, each a compare-and-set with its event row."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, JobId, MatrixId
from farm.core.jobs.job import Job, JobEvent, JobKind, JobState, advance
from farm.core.operations.event import EventSubject, WorkEvent
from farm.core.runs.measurement import Outcome
from farm.database.bulk import insert_rows
from farm.database.tables import jobs, literal
from farm.database.tables.columns import BigId
from farm.store.operations.events import record_event, record_if_moved, record_transitions

#: Checks run before all jobs of users.
CHECK_PRIORITY = 1_000_000


def job_of(row: sa.Row[Any]) -> Job:
    """Return the job of a row with all columns."""
    return Job(
        job_id=row.job_id,
        kind=JobKind(row.kind),
        device_id=row.device_id,
        matrix_id=row.matrix_id,
        cell_id=row.cell_id,
        round=row.round,
        repeat=row.repeat,
        priority=row.priority,
        virtual_time=row.virtual_time,
        state=JobState(row.state),
        outcome=None if row.outcome is None else Outcome(row.outcome),
        code=row.code,
        message=row.message,
        attempt_id=row.attempt_id,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


class NewJob(NamedTuple):
    """A benchmark job to be queued; a plain tuple, as `NewCell` is."""

    device_id: DeviceId
    cell_id: CellId
    round: int
    virtual_time: int
    repeat: int = 0


def add_jobs(
    connection: Connection,
    matrix_id: MatrixId,
    new_jobs: Sequence[NewJob],
    *,
    priority: int,
    now: datetime,
) -> None:
    """Queue benchmark jobs of a matrix by one insert, in running order; the caller records the event."""
    insert_rows(
        connection,
        jobs,
        NewJob._fields,
        new_jobs,
        same={
            "kind": JobKind.BENCHMARK,
            "matrix_id": matrix_id,
            "priority": priority,
            "state": JobState.QUEUED,
            "created_at": now,
        },
    )


def add_check(
    connection: Connection, device_id: DeviceId, *, now: datetime, cause: str, actor: str = "farm"
) -> JobId | None:
    """Queue a health check; None if one is open already."""
    open_check = connection.execute(
        sa.select(jobs.c.job_id).where(
            jobs.c.device_id == device_id,
            jobs.c.kind == literal(JobKind.CHECK),
            jobs.c.state != literal(JobState.FINISHED),
        )
    ).scalar_one_or_none()
    if open_check is not None:
        return None
    job_id = JobId(
        connection.execute(
            jobs.insert()
            .values(
                kind=JobKind.CHECK,
                device_id=device_id,
                round=0,
                repeat=0,
                priority=CHECK_PRIORITY,
                state=JobState.QUEUED,
                created_at=now,
            )
            .returning(jobs.c.job_id)
        ).scalar_one()
    )
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=WorkEvent.JOB_QUEUED,
        subject=EventSubject.JOB,
        subject_id=job_id,
        to_state=JobState.QUEUED,
        cause=f"check of {device_id}: {cause}",
    )
    return job_id


def find_job(connection: Connection, job_id: JobId) -> Job | None:
    """Return a job, or None."""
    return find_jobs(connection, [job_id]).get(job_id)


def find_jobs(connection: Connection, job_ids: Collection[JobId]) -> dict[JobId, Job]:
    """Return rows by id; unknown ids are missing."""
    rows = connection.execute(_by_ids_query(), {"job_ids": list(job_ids)})
    return {row.job_id: job_of(row) for row in rows}


@cache
def _by_ids_query() -> sa.Select[Any]:
    return sa.select(jobs).where(jobs.c.job_id.in_(sa.bindparam("job_ids", expanding=True)))


def is_block_repeated(connection: Connection, cell_id: CellId | None, *, round: int, repeat: int) -> bool:
    """Return True if a cell's round already has this repeat: a block is repeated with all of its cells."""
    query = sa.select(
        sa.exists().where(jobs.c.cell_id == cell_id, jobs.c.round == round, jobs.c.repeat == repeat)
    )
    return bool(connection.execute(query).scalar())


def move_job(
    connection: Connection,
    job: Job,
    event: JobEvent,
    *,
    now: datetime,
    actor: str,
    cause: str | None = None,
    values: Mapping[str, object] | None = None,
) -> bool:
    """Move a job by compare-and-set, with its event row; False when it is no longer where `job` says."""
    to = advance(job.state, event)
    if to is None:
        return False
    changes: dict[str, object] = {"state": to, **(values or {})}
    if to is JobState.FINISHED:
        changes["finished_at"] = now
    return record_if_moved(
        connection,
        _move_statement(),
        parameters={
            "of_job": job.job_id,
            "state_before": job.state,
            "attempt_before": job.attempt_id,
            **changes,
        },
        at=now,
        actor=actor,
        kind=event,
        subject=EventSubject.JOB,
        subject_id=job.job_id,
        from_state=job.state,
        to_state=to,
        cause=cause,
    )


@cache
def _move_statement() -> sa.Update:
    """Build the statement once: building takes longer than running it. Its parameters name the columns to
    set.
    """
    return jobs.update().where(
        jobs.c.job_id == sa.bindparam("of_job"),
        jobs.c.state == sa.bindparam("state_before"),
        jobs.c.attempt_id.is_not_distinct_from(sa.bindparam("attempt_before", type_=BigId)),
    )


def activate_jobs(
    connection: Connection, attempt_by_job: Sequence[tuple[Job, AttemptId]], *, now: datetime, actor: str
) -> bool:
    """Move queued jobs to their new attempts, each by compare-and-set with its event row.

    False when one of them is no longer where it was; the caller then takes all of it back.
    """
    moved = connection.execute(
        _activate_statement(),
        [
            {"of_job": job.job_id, "attempt_before": job.attempt_id, "new_attempt": attempt_id}
            for job, attempt_id in attempt_by_job
        ],
    )
    record_transitions(
        connection,
        at=now,
        actor=actor,
        kind=JobEvent.CLAIMED,
        subject=EventSubject.JOB,
        cause_by_id={job.job_id: f"attempt {attempt_id}" for job, attempt_id in attempt_by_job},
        from_state=JobState.QUEUED,
        to_state=JobState.ACTIVE,
    )
    return moved.rowcount == len(attempt_by_job)


@cache
def _activate_statement() -> sa.Update:
    return (
        jobs.update()
        .where(
            jobs.c.job_id == sa.bindparam("of_job"),
            jobs.c.state == JobState.QUEUED,
            jobs.c.attempt_id.is_not_distinct_from(sa.bindparam("attempt_before", type_=BigId)),
        )
        .values(state=JobState.ACTIVE, attempt_id=sa.bindparam("new_attempt"))
    )


def cancel_jobs(
    connection: Connection,
    matrix_id: MatrixId | None,
    source: JobState,
    *,
    device_id: DeviceId | None = None,
    limit: int | None = None,
    code: str | None = None,
    message: str | None = None,
    now: datetime,
    actor: str,
) -> int:
    """Finish jobs of a matrix, of a device or of both that are in one state as cancelled, each with its
    event row; how many. All of them, or so many at most: those that would begin first.
    """
    found = sa.select(jobs.c.job_id).where(jobs.c.state == literal(source))
    if matrix_id is not None:
        found = found.where(jobs.c.matrix_id == matrix_id)
    if device_id is not None:
        found = found.where(jobs.c.device_id == device_id)
    update = (
        jobs.update()
        .where(jobs.c.job_id.in_(found.order_by(jobs.c.job_id).limit(limit)), jobs.c.state == source)
        .values(
            state=JobState.FINISHED, outcome=Outcome.CANCELLED, code=code, message=message, finished_at=now
        )
        .returning(jobs.c.job_id)
    )
    # RETURNING has no order, but the events of a cancel must be the same on both databases (I20).
    cancelled = sorted(connection.execute(update).scalars())
    record_transitions(
        connection,
        at=now,
        actor=actor,
        kind=JobEvent.CANCELLED,
        subject=EventSubject.JOB,
        cause_by_id=dict.fromkeys(cancelled, message or Outcome.CANCELLED),
        from_state=source,
        to_state=JobState.FINISHED,
    )
    return len(cancelled)
