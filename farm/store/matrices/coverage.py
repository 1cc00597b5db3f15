"""What became of the cells of standing matrices: open jobs, and measurements that count."""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, Digest, MatrixId
from farm.core.jobs.job import JobState
from farm.core.runs.measurement import COUNTED, Outcome
from farm.database.rows import is_among
from farm.database.tables import cells, is_one_of, jobs, measurements, standing_cells


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProgress:
    """A cell of the matrix that last measured it."""

    matrix_id: MatrixId
    #: None while it is not stored, or never will be.
    cell_id: CellId | None
    jobs: int
    open_jobs: int
    is_measured: bool


def progress_by_version(connection: Connection, standing_id: int) -> dict[Digest, CellProgress]:
    """Return what became of the queued cells of a standing matrix, by their version digest."""
    is_open = sa.case((jobs.c.state != JobState.FINISHED, 1), else_=0)
    query = (
        sa.select(
            standing_cells.c.version_digest,
            standing_cells.c.matrix_id,
            cells.c.cell_id,
            sa.func.count(jobs.c.job_id),
            sa.func.coalesce(sa.func.sum(is_open), 0),
        )
        .outerjoin(
            cells,
            sa.and_(
                cells.c.matrix_id == standing_cells.c.matrix_id,
                cells.c.cell_index == standing_cells.c.cell_index,
            ),
        )
        .outerjoin(jobs, jobs.c.cell_id == cells.c.cell_id)
        .where(standing_cells.c.standing_id == standing_id)
        .group_by(standing_cells.c.version_digest, standing_cells.c.matrix_id, cells.c.cell_id)
    )
    rows = connection.execute(query).all()
    measured = _measured(connection, [row.cell_id for row in rows if row.cell_id is not None])
    return {
        digest: CellProgress(
            matrix_id=matrix_id,
            cell_id=cell_id,
            jobs=own_jobs,
            open_jobs=open_jobs,
            is_measured=cell_id in measured,
        )
        for digest, matrix_id, cell_id, own_jobs, open_jobs in rows
    }


def _measured(connection: Connection, cell_ids: Collection[CellId]) -> set[CellId]:
    query = sa.select(measurements.c.cell_id).where(
        is_among(connection, measurements.c.cell_id, cell_ids),
        measurements.c.accepted,
        is_one_of(measurements.c.quality, COUNTED),
    )
    return {*connection.execute(query.distinct()).scalars()}


def end_by_cell(connection: Connection, cell_ids: Collection[CellId]) -> dict[CellId, str]:
    """Return how the last job of cells ended, in words."""
    last = (
        sa.select(sa.func.max(jobs.c.job_id))
        .where(is_among(connection, jobs.c.cell_id, cell_ids), jobs.c.state == JobState.FINISHED)
        .group_by(jobs.c.cell_id)
    )
    query = sa.select(jobs.c.cell_id, jobs.c.outcome, jobs.c.message).where(jobs.c.job_id.in_(last))
    return {
        cell_id: message or ("no measurement counts" if outcome == Outcome.SUCCEEDED else str(outcome))
        for cell_id, outcome, message in connection.execute(query)
    }
