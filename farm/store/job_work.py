"""What benchmark jobs are about: cell, terms of the matrix, variant and program; read for many at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.ids import CellId, JobId, MatrixId
from farm.store.catalog import Variant, variants_by_id
from farm.store.jobs import Job
from farm.store.matrices import CellRow, cells_by_id
from farm.store.programs import Program, programs_by_id
from farm.store.tables import matrices


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a matrix says of all its jobs, without its list of rejected cells, which may be long."""

    matrix_id: MatrixId
    harness: str
    seed: int
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a benchmark job is about. Nothing of it ever changes."""

    cell: CellRow
    terms: Terms
    #: None where the harness runs no model.
    variant: Variant | None
    program: Program


def work_of(connection: Connection, jobs: Iterable[Job]) -> dict[JobId, Work]:
    """What benchmark jobs are about; checks, which have no cell, are missing. Four statements at most."""
    cell_by_job: dict[JobId, CellId] = {job.job_id: job.cell_id for job in jobs if job.cell_id is not None}
    if not cell_by_job:
        return {}
    cells = cells_by_id(connection, cell_by_job.values())
    terms = _terms_by_id(connection, {cell.matrix_id for cell in cells.values()})
    programs = programs_by_id(connection, {cell.program_id for cell in cells.values()})
    named = {cell.variant_id for cell in cells.values() if cell.variant_id is not None}
    variants = variants_by_id(connection, named) if named else {}
    return {
        job_id: Work(
            cell=cells[cell_id],
            terms=terms[cells[cell_id].matrix_id],
            variant=None if (variant_id := cells[cell_id].variant_id) is None else variants[variant_id],
            program=programs[cells[cell_id].program_id],
        )
        for job_id, cell_id in cell_by_job.items()
    }


def _terms_by_id(connection: Connection, matrix_ids: Iterable[MatrixId]) -> dict[MatrixId, Terms]:
    columns = (matrices.c.matrix_id, matrices.c.harness, matrices.c.seed, matrices.c.spec)
    query = sa.select(*columns).where(matrices.c.matrix_id.in_(list(matrix_ids)))
    return {row.matrix_id: Terms(**row._mapping) for row in connection.execute(query)}
