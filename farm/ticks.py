"""Periodic duties. APScheduler only says when; the database decides whether anything is due."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from farm.clock import Clock
from farm.core.errors import FarmError
from farm.services.reap import reap
from farm.store.database import Database

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def ticking(
    database: Database, clock: Clock, *, up_since: datetime, every_s: float, after: Callable[[], None]
) -> AsyncIterator[None]:
    """Run the periodic duties while the block runs; `after` is called on the event loop after each."""

    async def tick() -> None:
        try:
            await database.write_async(reap, now=clock.now(), up_since=up_since)
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
