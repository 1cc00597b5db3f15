"""Cells that are compared with another one, page by page."""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.database.tables import cells, variants
from farm.store.matrices.matrices import CellRow, cell_of, cells_with_models


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFilter:
    """Which ones; None does not narrow."""

    device_id: DeviceId | None = None
    model: str | None = None
    #: On these devices only.
    devices: Collection[DeviceId] | None = None

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """What rows of cells, joined with their variants, have to meet."""
        found: list[sa.ColumnElement[bool]] = []
        if self.device_id is not None:
            found.append(cells.c.device_id == self.device_id)
        if self.model is not None:
            found.append(variants.c.model == self.model)
        if self.devices is not None:
            found.append(cells.c.device_id.in_(self.devices))
        return found


def page_of_candidates(
    connection: Connection, matrix_id: MatrixId, among: CandidateFilter, *, after: int, limit: int
) -> list[CellRow]:
    """So many cells of a matrix with a baseline at most of those behind an index, by index."""
    query = (
        cells_with_models()
        .where(
            cells.c.matrix_id == matrix_id,
            cells.c.cell_index > after,
            cells.c.baseline_index.is_not(None),
            *among.conditions(),
        )
        .order_by(cells.c.cell_index)
        .limit(limit)
    )
    return [cell_of(row) for row in connection.execute(query)]
