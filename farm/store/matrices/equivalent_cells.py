"""What a matrix does with one variant, program, backend and settings, on whatever device."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, JobId, MatrixId
from farm.core.errors import Blame
from farm.core.jobs.job import JobState
from farm.core.jobs.poison_job import POISON_JOB, DeviceLoss
from farm.core.runs.measurement import Outcome
from farm.database.tables import attempts, cells, jobs, literal


def equivalents_of_cell(connection: Connection, cell_id: CellId) -> list[CellId]:
    """The cells of the same work in the cell's matrix, itself among them."""
    one, other = sa.alias(cells), sa.alias(cells)
    query = (
        sa.select(other.c.cell_id, other.c.settings, one.c.settings.label("wanted"))
        .select_from(one)
        .join(other, other.c.matrix_id == one.c.matrix_id)
        .where(
            one.c.cell_id == cell_id,
            other.c.variant_id.is_not_distinct_from(one.c.variant_id),
            other.c.program_id == one.c.program_id,
            other.c.backend == one.c.backend,
        )
        .order_by(other.c.cell_id)
    )
    # JSON compares by value here only.
    return [CellId(row.cell_id) for row in connection.execute(query) if row.settings == row.wanted]


def losses_of_cell(connection: Connection, matrix_id: MatrixId, cell_id: CellId) -> list[DeviceLoss]:
    """Attempts at the work of a cell, in its matrix, that ended without a verdict, through their devices."""
    one, other = sa.alias(cells), sa.alias(cells)
    query = (
        sa.select(attempts.c.device_id, attempts.c.code, other.c.settings, one.c.settings.label("wanted"))
        .select_from(attempts)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .join(other, other.c.cell_id == jobs.c.cell_id)
        .join(one, one.c.cell_id == cell_id)
        .where(
            attempts.c.outcome == literal(Outcome.INCONCLUSIVE),
            attempts.c.blame == literal(Blame.DEVICE),
            # By the few attempts that ended so, not by the matrix, which may have a million jobs.
            jobs.c.matrix_id + 0 == matrix_id,
            other.c.variant_id.is_not_distinct_from(one.c.variant_id),
            other.c.program_id == one.c.program_id,
            other.c.backend == one.c.backend,
        )
    )
    # JSON compares by value here only.
    return [
        DeviceLoss(device_id=DeviceId(row.device_id), code=row.code)
        for row in connection.execute(query)
        if row.settings == row.wanted
    ]


def queued_jobs_of_cells(
    connection: Connection, matrix_id: MatrixId, cell_ids: Sequence[CellId]
) -> list[JobId]:
    """The jobs of cells of a matrix that nobody has begun, oldest first."""
    query = (
        sa.select(jobs.c.job_id)
        .where(
            jobs.c.matrix_id == matrix_id,
            jobs.c.state == JobState.QUEUED,
            jobs.c.cell_id.in_(cell_ids),
        )
        .order_by(jobs.c.job_id)
    )
    return list(connection.execute(query).scalars())


def poison_cells(connection: Connection, matrix_id: MatrixId) -> set[CellId]:
    """The cells of a matrix that are run no more, on no device: their work made phones go away."""
    query = sa.select(jobs.c.cell_id).where(
        jobs.c.matrix_id == matrix_id,
        jobs.c.state == JobState.FINISHED,
        jobs.c.code == POISON_JOB,
    )
    found: set[CellId] = set()
    for cell_id in connection.execute(query.distinct()).scalars().all():
        if cell_id not in found:
            found.update(equivalents_of_cell(connection, cell_id))
    return found
