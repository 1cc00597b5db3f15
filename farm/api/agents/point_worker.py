"""Background computing of the points of series, by the process that settled reports, or by the leader."""

from collections.abc import Sequence

import structlog

from farm.clock import Clock
from farm.core.errors import FarmError
from farm.core.results.history.session_point import SessionPoint
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.services.results.history.session_points import (
    SESSIONS_AT_ONCE,
    find_due_sessions,
    points_of_piece,
    session_pieces,
    store_points,
)
from farm.store.results.history.stale_points import (
    MeasuredSession,
    StaleSession,
    has_unmarked,
    mark_measured,
)

log = structlog.get_logger(__name__)

#: Measurements whose sessions one transaction marks.
MARK_AT_ONCE = 2000
#: Marks are written so often at most: reports that come together need one transaction.
MARK_EVERY_S = 1.0


async def compute_points(database: Database, clock: Clock) -> None:
    """Mark what was measured, and compute all points that are due; other writers have their turn in between.

    A session whose points cannot be computed, through a defect of the farm, delays no other.
    """
    while await database.read_async(has_unmarked):
        await database.write_async(bind_tx(mark_measured, now=clock.now()), limit=MARK_AT_ONCE)
    failed: set[MeasuredSession] = set()
    at_once = SESSIONS_AT_ONCE
    while due := await database.read_async(
        find_due_sessions, now=clock.now(), excluded=failed, limit=at_once
    ):
        try:
            await _compute(database, clock, due)
        except FarmError:
            raise
        except Exception:
            if at_once == 1:
                (session,) = due
                log.exception("points_failed", matrix_id=session.matrix_id, device_id=session.device_id)
                failed.add(session.session)
            # From now on one by one: the others of them can be computed.
            at_once = 1


async def _compute(database: Database, clock: Clock, due: Sequence[StaleSession]) -> None:
    """Compute and store the points of sessions, a piece of them at a time."""
    points: list[SessionPoint] = []
    for piece in await database.read_async(session_pieces, [stale.session for stale in due]):
        points += await database.read_async(points_of_piece, piece)
    await database.write_async(bind_tx(store_points, now=clock.now()), due, points)
