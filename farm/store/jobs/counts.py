"""Counts of jobs by state and outcome, and their positions in the queues of their devices."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, JobId, MatrixId
from farm.core.jobs.job import Job, JobState
from farm.core.runs.measurement import Outcome
from farm.database.known_at import known_at
from farm.database.rows import is_among, rows_query, rows_text
from farm.database.tables import JOB_IS_QUEUED, attempts, cells, jobs, lazy_expansions


@dataclass(slots=True)
class Tally:
    """Counts of jobs by outcome, or by state while they have none."""

    jobs_by_outcome: dict[str, int] = field(default_factory=dict)
    last_finished_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """True if a job is not finished."""
        return any(state in self.jobs_by_outcome for state in (JobState.QUEUED, JobState.ACTIVE))

    @property
    def total(self) -> int:
        """The number of all jobs."""
        return sum(self.jobs_by_outcome.values())

    @property
    def finished(self) -> int:
        """The number of finished jobs, whatever their outcome."""
        jobs = self.jobs_by_outcome
        return self.total - jobs.get(JobState.QUEUED, 0) - jobs.get(JobState.ACTIVE, 0)

    def add(self, state: str, count: int, finished_at: datetime | None) -> None:
        """Add jobs of one outcome or state, with the time at which the last of them ended."""
        self.jobs_by_outcome[state] = self.jobs_by_outcome.get(state, 0) + count
        if finished_at is not None:
            self.last_finished_at = max(finished_at, self.last_finished_at or finished_at)

    def copy(self) -> "Tally":
        """Return a tally of the same jobs, which may be changed."""
        return Tally(dict(self.jobs_by_outcome), self.last_finished_at)

    def merge(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        for state, count in other.jobs_by_outcome.items():
            self.add(state, count, other.last_finished_at)


def tallies(connection: Connection, matrix_ids: Collection[MatrixId]) -> dict[MatrixId, Tally]:
    """Return the tally of each of these matrices; matrices without jobs are missing."""
    return _tallies(connection, jobs.c.matrix_id, jobs.c.matrix_id.in_(matrix_ids))


def tallies_of_cells(connection: Connection, cell_ids: Collection[CellId]) -> dict[CellId, Tally]:
    """Return the tally of each of these cells; cells without jobs are missing."""
    return _tallies(connection, jobs.c.cell_id, jobs.c.cell_id.in_(cell_ids))


def tally_by_device(
    connection: Connection, matrix_id: MatrixId, device_ids: Collection[DeviceId] | None = None
) -> dict[DeviceId, Tally]:
    """Return the tally of a matrix by device, or by some of them; devices without jobs are missing."""
    if device_ids is None:
        return _tallies(connection, jobs.c.device_id, jobs.c.matrix_id == matrix_id)
    # By their cells: no index has the jobs of a matrix by device.
    own = sa.select(cells.c.cell_id).where(
        cells.c.matrix_id == matrix_id, is_among(connection, cells.c.device_id, device_ids)
    )
    return _tallies(connection, jobs.c.device_id, jobs.c.cell_id.in_(own))


def _tallies(
    connection: Connection, key: sa.Column[Any], condition: sa.ColumnElement[bool]
) -> dict[Any, Tally]:
    state = sa.func.coalesce(jobs.c.outcome, jobs.c.state)
    counts = sa.select(key, state, sa.func.count(), sa.func.max(jobs.c.finished_at))
    tally_by_key: defaultdict[Any, Tally] = defaultdict(Tally)
    for value, name, count, ended_at in connection.execute(counts.where(condition).group_by(key, state)):
        tally_by_key[value].add(name, count, ended_at)
    return dict(tally_by_key)


def incomplete_cells(connection: Connection, cell_ids: Collection[CellId]) -> set[CellId]:
    """Return those of the cells of which a round is still to be run, or was cancelled."""
    is_missing = sa.or_(jobs.c.state != JobState.FINISHED, jobs.c.outcome == Outcome.CANCELLED)
    if (at := known_at(connection)) is not None:
        is_missing = sa.or_(is_missing, jobs.c.finished_at > at)
    query = sa.select(jobs.c.cell_id).where(is_among(connection, jobs.c.cell_id, cell_ids), is_missing)
    is_expanding = sa.exists().where(
        lazy_expansions.c.matrix_id == cells.c.matrix_id, lazy_expansions.c.device_id == cells.c.device_id
    )
    not_queued = sa.select(cells.c.cell_id).where(
        is_among(connection, cells.c.cell_id, cell_ids), is_expanding
    )
    return {*connection.execute(query.distinct()).scalars(), *connection.execute(not_queued).scalars()}


def count_by_state(
    connection: Connection, matrix_id: MatrixId, *, device_id: DeviceId | None = None
) -> dict[JobState, int]:
    """Count the jobs of a matrix, in total or on one device, by state; states without jobs are missing."""
    query = (
        sa.select(jobs.c.state, sa.func.count().label("job_count"))
        .where(jobs.c.matrix_id == matrix_id)
        .group_by(jobs.c.state)
    )
    if device_id is not None:
        query = query.where(jobs.c.device_id == device_id)
    return {JobState(row.state): row.job_count for row in connection.execute(query)}


def count_repeated_blocks(connection: Connection, matrix_id: MatrixId) -> int:
    """Count the repeats of blocks of a matrix, on all devices."""
    repeats = (
        sa.select(jobs.c.device_id, jobs.c.round, jobs.c.block, jobs.c.repeat)
        .where(jobs.c.matrix_id == matrix_id, jobs.c.repeat > 0)
        .distinct()
        .subquery()
    )
    return connection.execute(sa.select(sa.func.count()).select_from(repeats)).scalar_one()


def last_finish_times(
    connection: Connection, matrix_id: MatrixId, *, limit: int
) -> dict[DeviceId, list[datetime]]:
    """Return by device the last distinct times at which jobs of a matrix ended."""
    ends = (
        sa.select(jobs.c.device_id, jobs.c.finished_at)
        .where(jobs.c.matrix_id == matrix_id, jobs.c.state == JobState.FINISHED)
        .distinct()
        .subquery()
    )
    newest = sa.func.row_number().over(partition_by=ends.c.device_id, order_by=ends.c.finished_at.desc())
    numbered = sa.select(ends, newest.label("place")).subquery()
    query = sa.select(numbered.c.device_id, numbered.c.finished_at).where(numbered.c.place <= limit)
    ends_by_device: defaultdict[DeviceId, list[datetime]] = defaultdict(list)
    for device_id, finished_at in connection.execute(query):
        ends_by_device[device_id].append(finished_at)
    return dict(ends_by_device)


def attempt_ids_by_job(
    connection: Connection, job_ids: Collection[JobId]
) -> dict[JobId, tuple[AttemptId, ...]]:
    """Return the attempts of jobs, oldest first; jobs without attempts are missing."""
    query = (
        sa.select(attempts.c.job_id, attempts.c.attempt_id)
        .where(attempts.c.job_id.in_(job_ids))
        .order_by(attempts.c.attempt_id)
    )
    attempts_by_job: dict[JobId, tuple[AttemptId, ...]] = {}
    for job_id, attempt_id in connection.execute(query):
        attempts_by_job[job_id] = (*attempts_by_job.get(job_id, ()), attempt_id)
    return attempts_by_job


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJobs:
    """The open jobs of a matrix on a device."""

    queued: int = 0
    #: The one that runs first.
    first_queued: JobId | None = None
    active: JobId | None = None


_QUEUE_COLUMNS: list[sa.ColumnClause[Any]] = [
    sa.column("device_id", sa.Text),
    *(sa.column(name, sa.BigInteger) for name in ("priority", "virtual_time", "job_id")),
]


def count_before(connection: Connection, queued: Collection[Job], *, limit: int) -> dict[JobId, int]:
    """Count the jobs ahead of each of some jobs in its device's queue, up to a limit."""
    if not queued:
        return {}
    rows = [(job.device_id, job.priority, job.virtual_time, job.job_id) for job in queued]
    query = _count_before_query(connection.dialect.name)
    counts = connection.execute(query, {"rows": rows_text(rows), "most": limit}).all()
    return {job_id: min(count, limit) for job_id, count in counts}


@cache
def _count_before_query(dialect_name: str) -> sa.Select[Any]:
    """Return the one statement of `count_before`.

    Three ranges of the index: higher priority, earlier virtual time, lower job number.
    """
    asked = rows_query(dialect_name, _QUEUE_COLUMNS, "[]").subquery("asked")
    is_alike = jobs.c.priority == asked.c.priority
    ranges = (
        jobs.c.priority > asked.c.priority,
        sa.and_(is_alike, jobs.c.virtual_time < asked.c.virtual_time),
        sa.and_(is_alike, jobs.c.virtual_time == asked.c.virtual_time, jobs.c.job_id < asked.c.job_id),
    )
    counts = []
    for before in ranges:
        ahead = (
            sa.select(jobs.c.job_id)
            .where(jobs.c.device_id == asked.c.device_id, JOB_IS_QUEUED, before)
            .limit(sa.bindparam("most", type_=sa.Integer))
            .correlate(asked)
            .subquery()
        )
        counts.append(sa.select(sa.func.count()).select_from(ahead).scalar_subquery())
    return sa.select(asked.c.job_id, counts[0] + counts[1] + counts[2])


def queued_jobs(
    connection: Connection, matrix_id: MatrixId, device_ids: Collection[DeviceId]
) -> dict[DeviceId, OpenJobs]:
    """Return the queued jobs of a matrix on some devices; those without such are missing."""
    query = (
        sa.select(jobs.c.device_id, sa.func.count(), sa.func.min(jobs.c.job_id))
        .where(
            is_among(connection, jobs.c.device_id, device_ids),
            JOB_IS_QUEUED,
            # By the queues of the devices: a matrix may have a million queued jobs elsewhere.
            jobs.c.matrix_id + 0 == matrix_id,
        )
        .group_by(jobs.c.device_id)
    )
    found = {
        device_id: OpenJobs(queued=count, first_queued=first)
        for device_id, count, first in connection.execute(query).all()
    }
    return {device_id: found[device_id] for device_id in device_ids if device_id in found}


def open_jobs(connection: Connection, matrix_id: MatrixId) -> Mapping[DeviceId, OpenJobs]:
    """Return the open jobs of a matrix by device; devices without open jobs are missing.

    Jobs of a matrix have one priority; virtual times rise with job numbers, so the lowest number runs first.
    """
    query = (
        sa.select(jobs.c.device_id, jobs.c.state, sa.func.count().label("jobs"), sa.func.min(jobs.c.job_id))
        .where(jobs.c.matrix_id == matrix_id, jobs.c.state.in_((JobState.QUEUED, JobState.ACTIVE)))
        .group_by(jobs.c.device_id, jobs.c.state)
        .order_by(jobs.c.device_id)
    )
    open_by_device: dict[DeviceId, OpenJobs] = {}
    for device_id, state, count, first in connection.execute(query):
        own = open_by_device.get(device_id, OpenJobs())
        is_active = state == JobState.ACTIVE
        open_by_device[device_id] = (
            replace(own, active=first) if is_active else replace(own, queued=count, first_queued=first)
        )
    return open_by_device


def last_progress_at(connection: Connection, matrix_id: MatrixId) -> datetime | None:
    """Return when a job of a matrix last began or ended; None if none has."""
    ended = connection.execute(
        sa.select(sa.func.max(jobs.c.finished_at)).where(
            jobs.c.matrix_id == matrix_id, jobs.c.state == JobState.FINISHED
        )
    ).scalar()
    claimed = connection.execute(
        sa.select(sa.func.max(attempts.c.claimed_at))
        .join(jobs, jobs.c.attempt_id == attempts.c.attempt_id)
        .where(jobs.c.matrix_id == matrix_id, jobs.c.state == JobState.ACTIVE)
    ).scalar()
    return max(filter(None, (ended, claimed)), default=None)
