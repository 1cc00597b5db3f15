"""Periodic duties. APScheduler only says when; the database decides whether anything is due."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from sqlalchemy.engine import Connection

from farm.clock import Clock
from farm.core.errors import FarmError
from farm.core.patience import Patience
from farm.services.errands import expire_errands
from farm.services.holds import end_overdue_holds
from farm.services.operators import cancel_jobs_of_retired
from farm.services.reap import reap
from farm.store.database import Database

_log = structlog.get_logger(__name__)

#: A tick that is later than this many intervals tells that the farm, or its database, stood still.
_MISSED_TICKS = 3


@dataclass(slots=True)
class Serving:
    """Since when agents could reach the farm without a break: before that, nobody was late (I10).

    A process that was stopped, a database that was locked and a wall clock that jumped all look alike: too
    much, or less than no, time between two ticks that got through.
    """

    since: datetime
    at: datetime
    patience: timedelta

    def reached(self, now: datetime) -> datetime:
        """Note a tick; since when the farm has been serving."""
        if not timedelta(0) <= now - self.at <= self.patience:
            self.since = now
        self.at = now
        return self.since


@asynccontextmanager
async def sweeping(sweep: Callable[[], object], *, every_s: float) -> AsyncIterator[None]:
    """Have the limits of storage enforced while the block runs, on a thread of its own: disks are slow."""

    async def tick() -> None:
        try:
            await asyncio.to_thread(sweep)
        except (FarmError, OSError) as error:
            _log.warning("sweep_failed", error=type(error).__name__, message=str(error))

    scheduler = AsyncIOScheduler(timezone="UTC")
    scheduler.add_job(tick, "interval", seconds=every_s, max_instances=1, coalesce=True)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)


@asynccontextmanager
async def ticking(
    database: Database,
    clock: Clock,
    *,
    up_since: datetime,
    every_s: float,
    patience: Patience,
    after: Callable[[], None],
) -> AsyncIterator[None]:
    """Run the periodic duties while the block runs; `after` is called on the event loop after each."""

    serving = Serving(up_since, up_since, timedelta(seconds=_MISSED_TICKS * every_s))

    def reap_now(connection: Connection) -> None:
        # On the writer's thread: the time a tick had to wait for the database counts as a break.
        now = clock.now()
        up_since = serving.reached(now)
        reap(connection, now=now, up_since=up_since, patience=patience)
        expire_errands(connection, now=now, up_since=up_since)
        end_overdue_holds(connection, now=now)
        cancel_jobs_of_retired(connection, now=now)

    async def tick() -> None:
        try:
            await database.write_async(reap_now)
        except FarmError as error:
            # A busy database: the next tick finds the same work.
            _log.warning("tick_failed", code=error.code, message=error.message)
        after()

    scheduler = AsyncIOScheduler(timezone="UTC")
    scheduler.add_job(tick, "interval", seconds=every_s, max_instances=1, coalesce=True)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)
