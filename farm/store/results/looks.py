"""Looks at the cells of matrices that grow."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.results.looks.look import Look
from farm.database.known_at import known_at
from farm.database.rows import is_among, to_record
from farm.database.tables import cells, looks
from farm.database.transaction import Tx

_COLUMNS = [looks.c[field.name] for field in fields(Look)]


def add_looks(tx: Tx, taken: Sequence[tuple[CellId, Look]]) -> None:
    """Store looks.

    Raises:
        sqlalchemy.exc.IntegrityError: a cell has a look of that number already; none is stored.
    """
    rows = [{"cell_id": cell_id, "taken_at": tx.now, **asdict(look)} for cell_id, look in taken]
    if rows:
        tx.connection.execute(looks.insert(), rows)


def looks_of_cells(connection: Connection, cell_ids: Collection[CellId]) -> Mapping[CellId, Sequence[Look]]:
    """Return the looks at cells by their ids, oldest first; cells without looks are missing."""
    query = (
        sa.select(looks.c.cell_id, *_COLUMNS)
        .where(is_among(connection, looks.c.cell_id, cell_ids))
        .order_by(looks.c.cell_id, looks.c.number)
    )
    if (at := known_at(connection)) is not None:
        query = query.where(looks.c.taken_at <= at)
    by_cell: defaultdict[CellId, list[Look]] = defaultdict(list)
    for row in connection.execute(query):
        by_cell[row.cell_id].append(to_record(Look, row))
    return by_cell


def stopped_cells(
    connection: Connection, matrix_id: MatrixId, device_id: DeviceId | None = None
) -> set[CellId]:
    """Return the cells of a matrix, or of one of its devices, that get no further rounds."""
    query = (
        sa.select(looks.c.cell_id)
        .join(cells, cells.c.cell_id == looks.c.cell_id)
        .where(cells.c.matrix_id == matrix_id, looks.c.stopped.is_not(None))
    )
    if device_id is not None:
        query = query.where(cells.c.device_id == device_id)
    return set(connection.execute(query).scalars())
