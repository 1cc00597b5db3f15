"""Accepted measurements with their samples as they are stored, cell by cell."""

from base64 import b64encode
from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId
from farm.database.rows import is_among
from farm.database.tables import measurements
from farm.wire.documents.results.samples import SampledRun

_COLUMNS = [measurements.c[name] for name in SampledRun.model_fields if name != "samples"]


def packed_bytes_of(connection: Connection, cell_ids: Sequence[CellId]) -> dict[CellId, int]:
    """Return the bytes of packed samples of each cell that has measurements; reads no samples."""
    query = (
        sa.select(
            measurements.c.cell_id, sa.func.coalesce(sa.func.sum(sa.func.length(measurements.c.samples)), 0)
        )
        .where(is_among(connection, measurements.c.cell_id, cell_ids), measurements.c.accepted)
        .group_by(measurements.c.cell_id)
    )
    return {CellId(cell_id): int(size_bytes) for cell_id, size_bytes in connection.execute(query)}


def sampled_runs(connection: Connection, cell_ids: Sequence[CellId]) -> dict[CellId, list[SampledRun]]:
    """Return the accepted measurements of each cell that has any, by round and block."""
    query = (
        sa.select(measurements.c.cell_id, *_COLUMNS, measurements.c.samples)
        .where(is_among(connection, measurements.c.cell_id, cell_ids), measurements.c.accepted)
        .order_by(measurements.c.round, measurements.c.block, measurements.c.measurement_id)
    )
    runs_by_cell: defaultdict[CellId, list[SampledRun]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        values = {**row}
        own = runs_by_cell[CellId(values.pop("cell_id"))]
        samples = values.pop("samples")
        text = None if samples is None else b64encode(samples).decode("ascii")
        own.append(SampledRun(**values, samples=text))
    return runs_by_cell
