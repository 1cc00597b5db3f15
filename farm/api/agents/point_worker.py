"""Background computing of the points of series, by the process that settled reports, or by the leader."""

import asyncio

import structlog

from farm.clock import Clock
from farm.core.errors import FarmError
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.services.results.history.session_points import find_due_session, session_points, store_points
from farm.store.results.history.stale_points import MeasuredSession, has_unmarked, mark_measured

log = structlog.get_logger(__name__)

#: Measurements whose sessions one transaction marks.
MARK_AT_ONCE = 2000
#: Marks are written so often at most: reports that come together need one transaction.
MARK_EVERY_S = 1.0


async def compute_points(database: Database, clock: Clock, *, mark_every_s: float = MARK_EVERY_S) -> None:
    """Mark what was measured, and compute all points that are due; other writers have their turn in between.

    A session whose points cannot be computed, through a defect of the farm, delays no other.
    """
    await asyncio.sleep(mark_every_s)
    while await database.read_async(has_unmarked):
        await database.write_async(bind_tx(mark_measured, now=clock.now()), limit=MARK_AT_ONCE)
    failed: set[MeasuredSession] = set()
    while due := await database.read_async(find_due_session, now=clock.now(), excluded=failed):
        try:
            computed = await database.read_async(session_points, due.session)
            await database.write_async(bind_tx(store_points, now=clock.now()), due, computed)
        except FarmError:
            raise
        except Exception:
            log.exception("points_failed", matrix_id=due.matrix_id, device_id=due.device_id)
            failed.add(due.session)
