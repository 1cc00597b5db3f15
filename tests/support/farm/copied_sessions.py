"""A long history: one measured session of a farm under test, copied to further days with other times."""

import random
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, MatrixId
from farm.core.operations.event import WorkEvent
from farm.database.tables import cells, matrices, points
from farm.database.transaction import Tx
from farm.store.operations.events import record_event
from tests.support.farm.service_fixture import FarmRig

#: Sessions of quiet series differ by so much.
NOISE = 0.01
#: Four settings of two precisions.
FOUR_PAIRS = {
    "model": "mobilenet_v2",
    "precision": ["float32", "int8-core"],
    "format": "torchscript",
    "backend": "cpu",
    "warmup": [1, 2, 3, 4],
}


def another_file(farm: FarmRig, edition: str = "2") -> int:
    """Register another file of int8; its number."""
    farm.variant("int8-core", edition=edition)
    (newest,) = farm.rows("SELECT max(variant_id) AS variant_id FROM variants")
    return int(newest["variant_id"])


def copy_session(
    farm: FarmRig,
    source: MatrixId,
    *,
    days: float,
    slower: float = 1.0,
    variant_id: int | None = None,
    noise: float = NOISE,
) -> MatrixId:
    """Copy the matrix and points of a session; candidates take `slower` times as long there.

    Args:
        farm: with computed points.
        source: the matrix of the session.
        days: by which the copy is later.
        slower: factor of the candidates' times.
        variant_id: of the candidates; None: as in the source.
        noise: standard deviation of the logarithm of times between sessions.
    """

    def copy(connection: Connection) -> MatrixId:
        rng = random.Random(f"{source}/{days}")
        shift = timedelta(days=days)
        matrix = _rows(connection, matrices, matrices.c.matrix_id == source)[0]
        del matrix["matrix_id"]
        matrix |= {"created_at": matrix["created_at"] + shift, "request_key": None, "request_digest": None}
        matrix_id = MatrixId(connection.execute(matrices.insert(), matrix).inserted_primary_key[0])
        for row in _rows(connection, points, points.c.matrix_id == source):
            (cell,) = _rows(connection, cells, cells.c.cell_id == row["cell_id"])
            del cell["cell_id"]
            is_candidate = row["baseline_slot"] is not None
            if is_candidate and variant_id is not None:
                cell["variant_id"] = variant_id
            cell["matrix_id"] = matrix_id
            cell_id = CellId(connection.execute(cells.insert(), cell).inserted_primary_key[0])
            factor = (slower if is_candidate else 1.0) * (1 + rng.gauss(0, noise))
            row |= {
                "matrix_id": matrix_id,
                "cell_id": cell_id,
                "time_ns": row["time_ns"] * factor,
                "began_at": row["began_at"] + shift,
                "ended_at": row["ended_at"] + shift,
                "newest": False,
            }
            connection.execute(points.insert(), row)
        record_event(
            Tx(connection, farm.clock.now()), WorkEvent.MATRIX_SUBMITTED, matrix_id, to_state="queued"
        )
        return matrix_id

    return farm.write(copy)


def _rows(connection: Connection, table: sa.Table, which: sa.ColumnElement[bool]) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(sa.select(table).where(which)).mappings()]
