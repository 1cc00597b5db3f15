"""Pages and parts of the jobs of a matrix, which may be a million."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.jobs.job import Job, JobState
from farm.database.tables import cells, jobs
from farm.store.jobs.jobs import job_of


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
    merged = sa.union_all(*(sa.select(each) for each in of_states)).subquery()
    query = sa.select(merged).order_by(merged.c.job_id).limit(limit)
    return [job_of(row) for row in connection.execute(query)]


def jobs_of_cells(connection: Connection, matrix_id: MatrixId, first: int, last: int) -> list[Job]:
    """Return the jobs of a matrix's cells from one index to another, oldest first."""
    query = (
        sa.select(jobs)
        .join(cells, cells.c.cell_id == jobs.c.cell_id)
        .where(cells.c.matrix_id == matrix_id, cells.c.cell_index.between(first, last))
        .order_by(jobs.c.job_id)
    )
    return [job_of(row) for row in connection.execute(query)]


def running_by_device(connection: Connection, matrix_id: MatrixId) -> dict[DeviceId, str]:
    """Return by device a text on the running jobs of a matrix."""
    query = (
        sa.select(jobs.c.device_id, jobs.c.round, cells.c.label)
        .join(cells, cells.c.cell_id == jobs.c.cell_id)
        .where(jobs.c.matrix_id == matrix_id, jobs.c.state == JobState.ACTIVE)
        .order_by(jobs.c.job_id.desc())
    )
    return {row.device_id: f"round {row.round}, {row.label}" for row in connection.execute(query)}
