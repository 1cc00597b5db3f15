"""Pages of the cells that have a baseline."""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.database.tables import cells, variants
from farm.store.matrices.matrices import CellRow, cell_of, cells_with_models


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFilter:
    """A filter of cells; None does not restrict."""

    device_id: DeviceId | None = None
    model: str | None = None
    devices: Collection[DeviceId] | None = None

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on rows of cells joined with their variants."""
        conditions: list[sa.ColumnElement[bool]] = []
        if self.device_id is not None:
            conditions.append(cells.c.device_id == self.device_id)
        if self.model is not None:
            conditions.append(variants.c.model == self.model)
        if self.devices is not None:
            conditions.append(cells.c.device_id.in_(self.devices))
        return conditions


def page_of_candidates(
    connection: Connection, matrix_id: MatrixId, which: CandidateFilter, *, after: int, limit: int
) -> list[CellRow]:
    """Return up to `limit` matching cells with a baseline whose index is above `after`, by index."""
    query = (
        cells_with_models()
        .where(
            cells.c.matrix_id == matrix_id,
            cells.c.cell_index > after,
            cells.c.baseline_index.is_not(None),
            *which.conditions(),
        )
        .order_by(cells.c.cell_index)
        .limit(limit)
    )
    return [cell_of(row) for row in connection.execute(query)]
