"""Cells of a matrix as candidates of comparisons: by device, model and label; and its devices."""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.database.rows import is_key_among, to_record
from farm.database.tables import cells, variants
from farm.store.matrices.matrices import CELLS_WITH_MODELS, CellRow


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
        CELLS_WITH_MODELS.where(
            cells.c.matrix_id == matrix_id,
            cells.c.cell_index > after,
            cells.c.baseline_index.is_not(None),
            *which.conditions(),
        )
        .order_by(cells.c.cell_index)
        .limit(limit)
    )
    return [to_record(CellRow, row) for row in connection.execute(query)]


def labels_of_matrix(
    connection: Connection,
    matrix_ids: Collection[MatrixId],
    *,
    model: str | None = None,
    device_id: DeviceId | None = None,
) -> set[str]:
    """Return the labels of the cells of matrices, without duplicates of baselines.

    Args:
        connection: the database.
        matrix_ids: the matrices.
        model: only of this model.
        device_id: only of this device.
    """
    query = sa.select(cells.c.label).distinct()
    query = query.where(is_key_among(connection, cells.c.matrix_id, matrix_ids), cells.c.replica == 1)
    if model is not None:
        query = query.join(variants, variants.c.variant_id == cells.c.variant_id)
        query = query.where(variants.c.model == model)
    if device_id is not None:
        query = query.where(cells.c.device_id == device_id)
    return set(connection.execute(query).scalars())


def page_of_labelled(
    connection: Connection,
    matrix_id: MatrixId,
    which: CandidateFilter,
    labels: Collection[str] | None,
    *,
    after: int = -1,
    limit: int | None = None,
) -> list[CellRow]:
    """Return up to `limit` matching cells whose index is above `after`, by index; without duplicates.

    They have one of the labels; None: any.
    """
    query = CELLS_WITH_MODELS.where(
        cells.c.matrix_id == matrix_id, cells.c.cell_index > after, cells.c.replica == 1, *which.conditions()
    )
    if labels is not None:
        query = query.where(cells.c.label.in_(list(labels)))
    rows = connection.execute(query.order_by(cells.c.cell_index).limit(limit))
    return [to_record(CellRow, row) for row in rows]


def page_of_devices(
    connection: Connection, matrix_id: MatrixId, *, after: DeviceId, limit: int
) -> list[DeviceId]:
    """Return up to `limit` devices with stored cells of a matrix whose ids follow `after`, by id."""
    query = (
        sa.select(cells.c.device_id)
        .where(cells.c.matrix_id == matrix_id, cells.c.device_id > after)
        .distinct()
        .order_by(cells.c.device_id)
        .limit(limit)
    )
    return list(connection.execute(query).scalars())
