"""Equivalent cells of a matrix: the same variant, program, backend and settings on any device."""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, MatrixId
from farm.core.errors import Blame
from farm.core.jobs.job import Job, JobState
from farm.core.jobs.retry import POISON_JOB, DeviceLoss
from farm.core.runs.measurement import Outcome
from farm.database.rows import to_record
from farm.database.tables import attempts, cells, jobs, literal


def equivalents_of_cell(connection: Connection, cell_id: CellId) -> list[CellId]:
    """Return the equivalent cells in the cell's matrix, itself included."""
    one, other = sa.alias(cells), sa.alias(cells)
    query = (
        sa.select(other.c.cell_id, other.c.settings, one.c.settings.label("own_settings"))
        .select_from(one)
        .join(other, other.c.matrix_id == one.c.matrix_id)
        .where(
            one.c.cell_id == cell_id,
            *_equivalence(one, other),
        )
        .order_by(other.c.cell_id)
    )
    # The databases do not compare JSON by value.
    return [CellId(row.cell_id) for row in connection.execute(query) if row.settings == row.own_settings]


def losses_of_cell(connection: Connection, matrix_id: MatrixId, cell_id: CellId) -> list[DeviceLoss]:
    """Return the inconclusive attempts at a cell and its equivalents that are blamed on their devices."""
    one, other = sa.alias(cells), sa.alias(cells)
    query = (
        sa.select(
            attempts.c.device_id, attempts.c.code, other.c.settings, one.c.settings.label("own_settings")
        )
        .select_from(attempts)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .join(other, other.c.cell_id == jobs.c.cell_id)
        .join(one, one.c.cell_id == cell_id)
        .where(
            attempts.c.outcome == literal(Outcome.INCONCLUSIVE),
            attempts.c.blame == literal(Blame.DEVICE),
            # Prevents the index of the matrix, which may have a million jobs; few attempts lose a device.
            jobs.c.matrix_id + 0 == matrix_id,
            *_equivalence(one, other),
        )
    )
    # The databases do not compare JSON by value.
    return [
        to_record(DeviceLoss, row) for row in connection.execute(query) if row.settings == row.own_settings
    ]


def _equivalence(one: sa.FromClause, other: sa.FromClause) -> Iterator[sa.ColumnElement[bool]]:
    yield other.c.variant_id.is_not_distinct_from(one.c.variant_id)
    yield other.c.program_id == one.c.program_id
    yield other.c.backend == one.c.backend


def queued_jobs_of_cells(
    connection: Connection, matrix_id: MatrixId, cell_ids: Sequence[CellId]
) -> list[Job]:
    """Return the queued jobs of cells of a matrix, oldest first."""
    query = (
        sa.select(jobs)
        .where(
            jobs.c.matrix_id == matrix_id,
            jobs.c.state == JobState.QUEUED,
            jobs.c.cell_id.in_(cell_ids),
        )
        .order_by(jobs.c.job_id)
    )
    return [to_record(Job, row) for row in connection.execute(query)]


def poison_cells(connection: Connection, matrix_id: MatrixId) -> set[CellId]:
    """Return the cells of a matrix that run no more on any device, because their jobs are poison jobs."""
    query = sa.select(jobs.c.cell_id).where(
        jobs.c.matrix_id == matrix_id,
        jobs.c.state == JobState.FINISHED,
        jobs.c.code == POISON_JOB,
    )
    poison: set[CellId] = set()
    for cell_id in connection.execute(query.distinct()).scalars().all():
        if cell_id not in poison:
            poison.update(equivalents_of_cell(connection, cell_id))
    return poison
