"""Cells of a matrix by what came of them."""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.runs.measurement import COUNTED, CellState, Outcome
from farm.database.tables import cells, is_set, jobs, measurements
from farm.store.matrices.matrices import PLACED_CELLS, PlacedCell


def cells_in_state(
    connection: Connection,
    matrix_id: MatrixId,
    states: Collection[CellState],
    *,
    after: int,
    until: int,
    limit: int,
) -> list[PlacedCell]:
    """Return up to `limit` cells in these states behind one index and up to another, by index.

    Each cell up to the last one that is found costs up to four steps into indexes.
    """
    measured = sa.exists().where(measurements.c.cell_id == cells.c.cell_id, is_set(measurements.c.accepted))

    def ended(outcome: Outcome) -> sa.ColumnElement[bool]:
        return sa.exists().where(jobs.c.cell_id == cells.c.cell_id, jobs.c.outcome == outcome)

    state = sa.case(
        (measured.where(measurements.c.quality.in_(COUNTED)), CellState.VALID),
        (measured, CellState.REFUSED),
        (ended(Outcome.FAILED), CellState.FAILED),
        (ended(Outcome.UNSUPPORTED), CellState.UNSUPPORTED),
        else_=CellState.NOT_RUN,
    )
    query = (
        PLACED_CELLS.where(
            cells.c.matrix_id == matrix_id,
            cells.c.cell_index > after,
            cells.c.cell_index <= until,
            state.in_([*states]),
        )
        .order_by(cells.c.cell_index)
        .limit(limit)
    )
    return [PlacedCell(*row) for row in connection.execute(query).all()]
