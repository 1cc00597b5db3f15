"""Contexts of benchmark jobs: cell, terms of the matrix, variant and program, read in bulk."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, JobId, MatrixId
from farm.core.jobs.job import Job
from farm.database.tables import cells, matrices, variants
from farm.store.files.programs import Program, programs_by_id
from farm.store.files.variants import Variant, variant_of
from farm.store.matrices.matrices import CellRow, cell_of, cells_with_models


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTerms:
    """The properties of a matrix that all its jobs share."""

    matrix_id: MatrixId
    harness: str
    seed: int
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The immutable context of a benchmark job: cell, matrix terms, variant and program."""

    cell: CellRow
    terms: MatrixTerms
    #: None if the harness runs no model.
    variant: Variant | None
    program: Program


def job_contexts(connection: Connection, jobs: Iterable[Job]) -> dict[JobId, JobContext]:
    """Return the contexts of benchmark jobs; checks, which have no cell, are missing.

    Two statements, however many jobs.
    """
    cell_by_job: dict[JobId, CellId] = {job.job_id: job.cell_id for job in jobs if job.cell_id is not None}
    if not cell_by_job:
        return {}
    asked = {"cell_ids": list(set(cell_by_job.values()))}
    row_by_cell = {row.cell_id: row for row in connection.execute(_contexts_query(), asked)}
    programs = programs_by_id(connection, {row.program_id for row in row_by_cell.values()})
    return {
        job_id: _job_context(row_by_cell[cell_id], programs[row_by_cell[cell_id].program_id])
        for job_id, cell_id in cell_by_job.items()
    }


def _job_context(row: sa.Row[Any], program: Program) -> JobContext:
    terms = MatrixTerms(matrix_id=row.matrix_id, harness=row.harness, seed=row.seed, spec=row.spec)
    variant = None if row.variant_id is None else variant_of(row)
    return JobContext(cell=cell_of(row), terms=terms, variant=variant, program=program)


@cache
def _contexts_query() -> sa.Select[Any]:
    """Build the query once: every claim and every report runs it."""
    return (
        cells_with_models()
        .add_columns(variants.c.name, variants.c.manifest, variants.c.created_at)
        .join(matrices, matrices.c.matrix_id == cells.c.matrix_id)
        .add_columns(matrices.c.harness, matrices.c.seed, matrices.c.spec)
        .where(cells.c.cell_id.in_(sa.bindparam("cell_ids", expanding=True)))
    )
