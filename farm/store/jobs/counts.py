"""Counts of jobs by state and outcome."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, JobId, MatrixId
from farm.core.jobs.job import JobState
from farm.database.tables import attempts, jobs


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

    def merge(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        for state, count in other.jobs_by_outcome.items():
            self.add(state, count, other.last_finished_at)


def tallies(connection: Connection) -> dict[MatrixId, Tally]:
    """Return the tally of each matrix; matrices without jobs are missing."""
    state = sa.func.coalesce(jobs.c.outcome, jobs.c.state)
    query = (
        sa.select(jobs.c.matrix_id, state, sa.func.count(), sa.func.max(jobs.c.finished_at))
        .where(jobs.c.matrix_id.is_not(None))
        .group_by(jobs.c.matrix_id, state)
    )
    found: defaultdict[MatrixId, Tally] = defaultdict(Tally)
    for matrix_id, name, count, ended_at in connection.execute(query):
        found[matrix_id].add(name, count, ended_at)
    return dict(found)


def tally_of_cell(connection: Connection, cell_id: CellId) -> Tally:
    """Return the tally of a cell."""
    state = sa.func.coalesce(jobs.c.outcome, jobs.c.state)
    query = (
        sa.select(state, sa.func.count(), sa.func.max(jobs.c.finished_at))
        .where(jobs.c.cell_id == cell_id)
        .group_by(state)
    )
    tally = Tally()
    for name, count, ended_at in connection.execute(query):
        tally.add(name, count, ended_at)
    return tally


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


def tally_by_device(connection: Connection, matrix_id: MatrixId) -> dict[DeviceId, Tally]:
    """Return the tally of a matrix by device; devices without jobs are missing."""
    state = sa.func.coalesce(jobs.c.outcome, jobs.c.state)
    query = (
        sa.select(jobs.c.device_id, state, sa.func.count(), sa.func.max(jobs.c.finished_at))
        .where(jobs.c.matrix_id == matrix_id)
        .group_by(jobs.c.device_id, state)
    )
    found: defaultdict[DeviceId, Tally] = defaultdict(Tally)
    for device_id, name, count, ended_at in connection.execute(query):
        found[device_id].add(name, count, ended_at)
    return dict(found)


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
    found: defaultdict[DeviceId, list[datetime]] = defaultdict(list)
    for device_id, finished_at in connection.execute(query):
        found[device_id].append(finished_at)
    return dict(found)


def attempt_ids_by_job(
    connection: Connection, job_ids: Collection[JobId]
) -> dict[JobId, tuple[AttemptId, ...]]:
    """Return the attempts of jobs, oldest first; jobs without attempts are missing."""
    query = (
        sa.select(attempts.c.job_id, attempts.c.attempt_id)
        .where(attempts.c.job_id.in_(job_ids))
        .order_by(attempts.c.attempt_id)
    )
    found: dict[JobId, tuple[AttemptId, ...]] = {}
    for job_id, attempt_id in connection.execute(query):
        found[job_id] = (*found.get(job_id, ()), attempt_id)
    return found
