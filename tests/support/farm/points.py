"""The points of a farm under test, computed as its worker does."""

from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.results.history.session_point import PointValues, SessionPoint
from farm.database.rows import to_record
from farm.database.tables import points
from farm.database.transaction import bind_tx
from farm.services.results.history.session_points import (
    QUIET_S,
    find_due_sessions,
    points_of_piece,
    session_pieces,
    store_points,
)
from farm.store.results.history.stale_points import has_unmarked, mark_measured
from tests.support.farm.service_fixture import FarmRig


def compute_points(farm: FarmRig, *, mark_at_once: int = 7) -> int:
    """Compute all points that are due once nothing is measured any more; how many sessions that were."""
    now = farm.clock.now()
    while farm.read(has_unmarked):
        farm.write(bind_tx(mark_measured, now=now), limit=mark_at_once)
    later, sessions = now + timedelta(seconds=QUIET_S), 0
    while due := farm.read(find_due_sessions, now=later):
        points: list[SessionPoint] = []
        for piece in farm.read(session_pieces, [stale.session for stale in due]):
            points += farm.read(points_of_piece, piece)
        assert len(farm.write(bind_tx(store_points, now=later), due, points)) == len(due)
        sessions += len(due)
    return sessions


def all_points(farm: FarmRig) -> list[SessionPoint]:
    """Return all stored points, by matrix and cell."""

    def stored(connection: Connection) -> list[SessionPoint]:
        query = sa.select(points).order_by(points.c.matrix_id, points.c.cell_id)
        return [
            to_record(SessionPoint, row, values=to_record(PointValues, row))
            for row in connection.execute(query)
        ]

    return farm.read(stored)
