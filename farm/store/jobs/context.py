"""Contexts of benchmark jobs: cell, spec of the matrix, variant and program, read in bulk."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, JobId
from farm.core.jobs.job import Job
from farm.core.matrices.matrix import MatrixSpec
from farm.core.models.variant import Variant
from farm.database.rows import to_record
from farm.database.tables import cells, matrices, variants
from farm.store.files.programs import Program, programs_by_id
from farm.store.matrices.matrices import CELLS_WITH_MODELS, CellRow


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The immutable context of a benchmark job: cell, spec of the matrix, variant and program."""

    cell: CellRow
    spec: MatrixSpec
    #: None if the harness runs no model.
    variant: Variant | None
    program: Program


_NO_PROGRAMS: Mapping[int, Program] = {}
_CONTEXTS_QUERY = (
    CELLS_WITH_MODELS.add_columns(variants.c.name, variants.c.manifest, variants.c.created_at)
    .join(matrices, matrices.c.matrix_id == cells.c.matrix_id)
    .add_columns(matrices.c.spec)
    .where(cells.c.cell_id.in_(sa.bindparam("cell_ids", expanding=True)))
)


def job_contexts(
    connection: Connection, jobs: Iterable[Job], *, known_programs: Mapping[int, Program] = _NO_PROGRAMS
) -> dict[JobId, JobContext]:
    """Return the contexts of benchmark jobs; checks, which have no cell, are missing.

    Two statements, however many jobs; one, if the programs are known.
    """
    cell_by_job: dict[JobId, CellId] = {job.job_id: job.cell_id for job in jobs if job.cell_id is not None}
    if not cell_by_job:
        return {}
    parameters = {"cell_ids": list(set(cell_by_job.values()))}
    row_by_cell = {row.cell_id: row for row in connection.execute(_CONTEXTS_QUERY, parameters)}
    new_programs = {row.program_id for row in row_by_cell.values()} - known_programs.keys()
    programs = {**known_programs, **(programs_by_id(connection, new_programs) if new_programs else {})}
    context_by_cell = {
        cell_id: to_record(
            JobContext,
            row,
            cell=to_record(CellRow, row),
            variant=None if row.variant_id is None else to_record(Variant, row),
            program=programs[row.program_id],
        )
        for cell_id, row in row_by_cell.items()
    }
    return {job_id: context_by_cell[cell_id] for job_id, cell_id in cell_by_job.items()}
