"""Periodic duties. APScheduler only says when; the database decides whose they are, and what is due."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from farm.core.errors import FarmError
from farm.core.jobs.leader_lease import LeaseDecision
from farm.database.engine import Database
from farm.services.periodic.leader_election import PeriodicLeader

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def run_sweeps(
    sweep: Callable[[], object], *, every_s: float, should_run: Callable[[], bool] = lambda: True
) -> AsyncIterator[None]:
    """Have the limits of storage enforced while the block runs, on a thread of its own: disks are slow.

    Args:
        whenever: whether it is this process's turn.
    """

    async def tick() -> None:
        if not should_run():
            return
        try:
            await asyncio.to_thread(sweep)
        except (FarmError, OSError) as error:
            _log.warning("sweep_failed", error=type(error).__name__, message=str(error))

    async with _every(every_s, tick):
        yield


@asynccontextmanager
async def run_reminders(
    asked: asyncio.Event, *, every_s: float, should_run: Callable[[], bool]
) -> AsyncIterator[None]:
    """Have somebody look for what another life of the farm left half done, while the block runs.

    Args:
        whenever: whether it is this process's turn.
    """

    async def tick() -> None:
        if should_run():
            asked.set()

    async with _every(every_s, tick):
        yield


@asynccontextmanager
async def run_periodic_tasks(database: Database, duties: PeriodicLeader) -> AsyncIterator[None]:
    """Run the periodic duties while the block runs."""

    async def tick() -> None:
        try:
            whose = await database.write_async(duties.tick)
            if whose is LeaseDecision.TAKEN:
                # Events tell operators; a farm that starts has nothing to say about it.
                _log.debug("leader_lease_acquired", process=duties.process)
        except FarmError as error:
            # A busy database: the next tick finds the same work.
            _log.warning("tick_failed", code=error.code, message=error.message)

    try:
        async with _every(duties.every_s, tick):
            yield
    finally:
        with contextlib.suppress(FarmError):
            await database.write_async(duties.resign)


@asynccontextmanager
async def _every(every_s: float, tick: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    scheduler = AsyncIOScheduler(timezone="UTC")
    scheduler.add_job(tick, "interval", seconds=every_s, max_instances=1, coalesce=True)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)
