"""What the jobs of finished matrices come to, which never changes: counted once by a process."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import JobId, MatrixId
from farm.core.jobs.job import JobState
from farm.database.rows import is_among
from farm.database.tables import jobs, matrices
from farm.store.jobs.counts import Tally, count_repeated_blocks, tallies

#: Matrices that are remembered; beyond it, all are counted again.
_MAX_KNOWN = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJobs:
    """The jobs of a matrix, all of which have ended."""

    #: Jobs that are added later have a higher number.
    last_job: JobId
    tally: Tally
    repeated_blocks: int


def _has(state: JobState) -> sa.ColumnElement[bool]:
    return sa.exists().where(jobs.c.matrix_id == matrices.c.matrix_id, jobs.c.state == state)


_ENDS_QUERY = sa.select(
    matrices.c.matrix_id,
    sa.select(sa.func.max(jobs.c.job_id))
    .where(jobs.c.matrix_id == matrices.c.matrix_id, jobs.c.state == JobState.FINISHED)
    .scalar_subquery()
    .label("last_job"),
).where(~_has(JobState.QUEUED), ~_has(JobState.ACTIVE))


class FinishedMatrices:
    """The finished matrices that one farm process has counted. Threads may share it.

    A job that has ended never changes, so what was counted holds while no job of the matrix is open and none
    was added, which takes a few steps into an index.
    """

    def __init__(self) -> None:
        self._known: dict[MatrixId, FinishedJobs] = {}

    def find(
        self, connection: Connection, matrix_ids: Collection[MatrixId]
    ) -> Mapping[MatrixId, FinishedJobs]:
        """Return those of some matrices that have jobs, and none that is queued or runs."""
        ends = connection.execute(_ENDS_QUERY.where(is_among(connection, matrices.c.matrix_id, matrix_ids)))
        last_jobs: dict[MatrixId, JobId] = {
            row.matrix_id: row.last_job for row in ends if row.last_job is not None
        }
        found = {
            matrix_id: known
            for matrix_id, last_job in last_jobs.items()
            if (known := self._known.get(matrix_id)) is not None and known.last_job == last_job
        }
        new = [matrix_id for matrix_id in last_jobs if matrix_id not in found]
        for matrix_id, tally in tallies(connection, new).items() if new else ():
            found[matrix_id] = FinishedJobs(
                last_job=last_jobs[matrix_id],
                tally=tally,
                repeated_blocks=count_repeated_blocks(connection, matrix_id),
            )
        if new:
            kept = self._known if len(self._known) < _MAX_KNOWN else {}
            self._known = {**kept, **found}
        return found
