"""Jobs, their transitions by compare-and-set with an event row, and the virtual times that order them."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, JobId, MatrixId
from farm.core.jobs.fair_share import first_virtual_time
from farm.core.jobs.job import Job, JobEvent, JobKind, JobState, advance
from farm.core.operations.event import WorkEvent
from farm.core.runs.measurement import Outcome
from farm.database.rows import find_record, insert_rows, is_among, to_record
from farm.database.tables import (
    JOB_IS_CHECK,
    JOB_IS_QUEUED,
    JOB_IS_UNFINISHED,
    cells,
    devices,
    jobs,
    literal,
    matrices,
)
from farm.database.tables.columns import BigId
from farm.database.transaction import Tx
from farm.store.matrices import lazy_expansion
from farm.store.operations.events import record_alike, record_event, record_if_moved, record_transitions

#: Checks run before all jobs of users.
CHECK_PRIORITY = 1_000_000


class NewJob(NamedTuple):
    """A benchmark job to be queued; a plain tuple, as `NewCell` is."""

    device_id: DeviceId
    cell_id: CellId
    round: int
    block: int
    place: int
    virtual_time: int
    repeat: int = 0


def add_jobs(tx: Tx, matrix_id: MatrixId, new_jobs: Sequence[NewJob], *, priority: int) -> None:
    """Queue benchmark jobs of a matrix by one insert, in running order; the caller records the event."""
    insert_rows(
        tx.connection,
        jobs,
        NewJob._fields,
        new_jobs,
        same={
            "kind": JobKind.BENCHMARK,
            "matrix_id": matrix_id,
            "priority": priority,
            "state": JobState.QUEUED,
            "created_at": tx.now,
        },
    )


def add_check(tx: Tx, device_id: DeviceId, *, cause: str) -> JobId | None:
    """Queue a health check; None if one is open already."""
    if find_open_check(tx.connection, device_id) is not None:
        return None
    check = {"kind": JobKind.CHECK, "device_id": device_id, "round": 0, "repeat": 0}
    queued = {"priority": CHECK_PRIORITY, "state": JobState.QUEUED, "created_at": tx.now}
    insert = jobs.insert().values(check | queued).returning(jobs.c.job_id)
    job_id = JobId(tx.connection.execute(insert).scalar_one())
    record_event(
        tx, WorkEvent.JOB_QUEUED, job_id, to_state=JobState.QUEUED, cause=f"check of {device_id}: {cause}"
    )
    return job_id


def find_open_check(connection: Connection, device_id: DeviceId) -> Job | None:
    """Return the health check of a device that is queued or runs, or None."""
    query = sa.select(jobs).where(
        jobs.c.device_id == device_id,
        JOB_IS_CHECK,
        JOB_IS_UNFINISHED,
    )
    return find_record(connection, Job, query)


def find_job(connection: Connection, job_id: JobId) -> Job | None:
    """Return a job, or None."""
    return find_jobs(connection, [job_id]).get(job_id)


_BY_IDS_QUERY = sa.select(jobs).where(jobs.c.job_id.in_(sa.bindparam("job_ids", expanding=True)))


def find_jobs(connection: Connection, job_ids: Collection[JobId]) -> dict[JobId, Job]:
    """Return rows by id; unknown ids are missing."""
    rows = connection.execute(_BY_IDS_QUERY, {"job_ids": list(job_ids)})
    return {row.job_id: to_record(Job, row) for row in rows}


#: Of one job, or of many at once; its parameters name the columns to set.
MOVE_JOB_STATEMENT = jobs.update().where(
    jobs.c.job_id == sa.bindparam("of_job"),
    jobs.c.state == sa.bindparam("state_before"),
    jobs.c.attempt_id.is_not_distinct_from(sa.bindparam("attempt_before", type_=BigId)),
)


def move_job(
    tx: Tx, job: Job, event: JobEvent, *, cause: str | None = None, values: Mapping[str, object] | None = None
) -> bool:
    """Move a job by compare-and-set, and record an event for it.

    Return False if the event is not allowed in the job's state, or if its state or attempt has changed since
    `job` was read.
    """
    to = advance(job.state, event)
    if to is None:
        return False
    changes: dict[str, object] = {"state": to, **(values or {})}
    if to is JobState.FINISHED:
        changes["finished_at"] = tx.now
    return record_if_moved(
        tx,
        MOVE_JOB_STATEMENT,
        event,
        job.job_id,
        parameters={
            "of_job": job.job_id,
            "state_before": job.state,
            "attempt_before": job.attempt_id,
            **changes,
        },
        from_state=job.state,
        to_state=to,
        cause=cause,
    )


_ACTIVATE_STATEMENT = (
    jobs.update()
    .where(
        jobs.c.job_id == sa.bindparam("of_job"),
        jobs.c.state == JobState.QUEUED,
        jobs.c.attempt_id.is_not_distinct_from(sa.bindparam("attempt_before", type_=BigId)),
    )
    .values(state=JobState.ACTIVE, attempt_id=sa.bindparam("new_attempt"))
)


def activate_jobs(tx: Tx, claims: Sequence[tuple[Job, AttemptId]]) -> bool:
    """Move queued jobs to their new attempts, each by compare-and-set with its event row.

    Return False if any of them has changed since it was read; the caller must then roll back.
    """
    moved = tx.connection.execute(
        _ACTIVATE_STATEMENT,
        [
            {"of_job": job.job_id, "attempt_before": job.attempt_id, "new_attempt": attempt_id}
            for job, attempt_id in claims
        ],
    )
    record_transitions(
        tx,
        JobEvent.CLAIMED,
        {job.job_id: f"attempt {attempt_id}" for job, attempt_id in claims},
        from_state=JobState.QUEUED,
        to_state=JobState.ACTIVE,
    )
    return moved.rowcount == len(claims)


def cancel_jobs(
    tx: Tx,
    matrix_id: MatrixId | None,
    state: JobState,
    *,
    device_id: DeviceId | None = None,
    after: int = 0,
    limit: int | None = None,
    code: str | None = None,
    message: str | None = None,
) -> list[JobId]:
    """Cancel the jobs of a matrix, a device, or both that are in the given state and above a job id.

    Record an event for each, by one statement for all. Return the cancelled jobs in order. With `limit`,
    cancel at most that many, lowest job id first.
    """
    selected = sa.select(jobs.c.job_id).where(jobs.c.state == literal(state), jobs.c.job_id > after)
    if matrix_id is not None:
        selected = selected.where(jobs.c.matrix_id == matrix_id)
    if device_id is not None:
        selected = selected.where(jobs.c.device_id == device_id)
    update = (
        jobs.update()
        .where(jobs.c.job_id.in_(selected.order_by(jobs.c.job_id).limit(limit)), jobs.c.state == state)
        .values(
            state=JobState.FINISHED, outcome=Outcome.CANCELLED, code=code, message=message, finished_at=tx.now
        )
        .returning(jobs.c.job_id)
    )
    # RETURNING has no order, but the events of a cancel must be the same on both databases (I20).
    cancelled = sorted(tx.connection.execute(update).scalars())
    record_alike(
        tx,
        JobEvent.CANCELLED,
        cancelled,
        from_state=state,
        to_state=JobState.FINISHED,
        cause=message or Outcome.CANCELLED,
    )
    return [JobId(job_id) for job_id in cancelled]


def first_virtual_times(
    connection: Connection, device_ids: Collection[DeviceId], *, priority: int, submitted_by: str | None
) -> dict[DeviceId, int]:
    """Return by device the virtual time at which a submitter's next jobs of a priority join its queue."""
    heads = _heads(connection, device_ids, priority)
    tails: dict[DeviceId, int] = {}
    if submitted_by is not None:
        tails = _own_tails(connection, device_ids, priority, submitted_by)
        # Jobs that are not queued yet have their virtual times already.
        later = lazy_expansion.last_virtual_times(
            connection, device_ids, priority=priority, submitted_by=submitted_by
        )
        tails |= {device_id: max(time, tails.get(device_id, 0)) for device_id, time in later.items()}
    return {
        device_id: first_virtual_time(heads.get(device_id), tails.get(device_id)) for device_id in device_ids
    }


def _heads(connection: Connection, device_ids: Collection[DeviceId], priority: int) -> dict[DeviceId, int]:
    """Return the virtual time at the head of each device's queue, by one index lookup per device."""
    head = (
        sa.select(jobs.c.virtual_time)
        .where(
            jobs.c.device_id == devices.c.device_id,
            JOB_IS_QUEUED,
            jobs.c.priority == priority,
        )
        .order_by(jobs.c.virtual_time)
        .limit(1)
        .correlate(devices)
        .scalar_subquery()
    )
    query = sa.select(devices.c.device_id, head.label("virtual_time")).where(
        devices.c.device_id.in_(list(device_ids))
    )
    return {
        DeviceId(row.device_id): row.virtual_time
        for row in connection.execute(query)
        if row.virtual_time is not None
    }


def _own_tails(
    connection: Connection, device_ids: Collection[DeviceId], priority: int, submitted_by: str
) -> dict[DeviceId, int]:
    """Return the last virtual time of a submitter's waiting jobs; the cost grows with these alone."""
    own = sa.select(matrices.c.matrix_id).where(matrices.c.submitted_by == submitted_by)
    query = (
        sa.select(jobs.c.device_id, sa.func.max(jobs.c.virtual_time).label("virtual_time"))
        .where(
            jobs.c.matrix_id.in_(own),
            jobs.c.state == JobState.QUEUED,
            jobs.c.device_id.in_(list(device_ids)),
            jobs.c.priority == priority,
        )
        .group_by(jobs.c.device_id)
    )
    return {DeviceId(row.device_id): row.virtual_time for row in connection.execute(query)}


def jobs_of_cell(connection: Connection, cell_id: CellId, *, after: int, limit: int) -> list[Job]:
    """Return up to `limit` jobs of a cell after one, in the order of queueing."""
    query = (
        sa.select(jobs)
        .where(jobs.c.cell_id == cell_id, jobs.c.job_id > after)
        .order_by(jobs.c.job_id)
        .limit(limit)
    )
    return [to_record(Job, row) for row in connection.execute(query)]


def first_open_job(connection: Connection, cell_id: CellId) -> JobId | None:
    """Return the first job of a cell that is queued or runs, or None."""
    query = (
        sa.select(jobs.c.job_id)
        .where(jobs.c.cell_id == cell_id, JOB_IS_UNFINISHED)
        .order_by(jobs.c.job_id)
        .limit(1)
    )
    return connection.execute(query).scalar()


def list_jobs(
    connection: Connection, matrix_id: MatrixId, *, after: int = 0, limit: int | None = None
) -> list[Job]:
    """Return up to `limit` jobs of a matrix after one, in the order of queueing."""
    # One range of the index per state, so that a page costs no more than its rows.
    of_states = [
        sa.select(jobs)
        .where(jobs.c.matrix_id == matrix_id, jobs.c.state == state, jobs.c.job_id > after)
        .order_by(jobs.c.job_id)
        .limit(limit)
        .subquery()
        for state in JobState
    ]
    merged = sa.union_all(*(sa.select(page) for page in of_states)).subquery()
    query = sa.select(merged).order_by(merged.c.job_id).limit(limit)
    return [to_record(Job, row) for row in connection.execute(query)]


def count_open_jobs(connection: Connection, submitted_by: str) -> int:
    """Return the number of a person's unfinished jobs, including those that are still to be queued."""
    of_person = matrices.c.submitted_by == submitted_by
    unfinished = jobs.c.state.in_([JobState.QUEUED, JobState.ACTIVE])
    query = sa.select(sa.func.count()).join_from(matrices, jobs).where(of_person, unfinished)
    return connection.execute(query).scalar_one() + lazy_expansion.count_remaining_jobs(connection, of_person)


class AlikeJobs(NamedTuple):
    """Jobs of a cell that came to the same."""

    cell_id: CellId
    state: JobState
    outcome: Outcome | None
    code: str | None
    message: str | None
    #: How many there are.
    jobs: int
    last_attempt: AttemptId | None


def alike_jobs_of_cells(connection: Connection, cell_ids: Collection[CellId]) -> list[AlikeJobs]:
    """Return what the jobs of cells come to, oldest first."""
    alike = (jobs.c.cell_id, jobs.c.state, jobs.c.outcome, jobs.c.code, jobs.c.message)
    query = (
        sa.select(*alike, sa.func.count(), sa.func.max(jobs.c.attempt_id))
        .where(is_among(connection, jobs.c.cell_id, cell_ids))
        .group_by(*alike)
        .order_by(sa.func.min(jobs.c.job_id))
    )
    return [
        AlikeJobs(
            cell_id,
            JobState(state),
            None if outcome is None else Outcome(outcome),
            code,
            message,
            count,
            last_attempt,
        )
        for cell_id, state, outcome, code, message, count, last_attempt in connection.execute(query).all()
    ]


def running_by_device(connection: Connection, matrix_id: MatrixId) -> dict[DeviceId, str]:
    """Return by device a text on the running jobs of a matrix."""
    query = (
        sa.select(jobs.c.device_id, jobs.c.round, cells.c.label)
        .join(cells, cells.c.cell_id == jobs.c.cell_id)
        .where(jobs.c.matrix_id == matrix_id, jobs.c.state == JobState.ACTIVE)
        .order_by(jobs.c.job_id.desc())
    )
    return {row.device_id: f"round {row.round}, {row.label}" for row in connection.execute(query)}
