"""Periodic tasks: APScheduler triggers them; the database decides which process runs them and what is due."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from apscheduler.job import Job
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from farm.core.errors import FarmError
from farm.core.operations.leader_lease import LeaseDecision
from farm.database.engine import Database
from farm.services.periodic.leader_election import PeriodicLeader

log = structlog.get_logger(__name__)


@asynccontextmanager
async def run_sweeps(
    sweep: Callable[[], object], *, every_s: float, should_run: Callable[[], bool] = lambda: True
) -> AsyncIterator[None]:
    """Sweep periodically while the block runs, on another thread, because disks are slow.

    Args:
        sweep: blocks until it is done.
        every_s: the period.
        should_run: returns True if this process runs the task.
    """

    async def tick() -> None:
        if not should_run():
            return
        try:
            await asyncio.to_thread(sweep)
        except (FarmError, OSError) as error:
            log.warning("sweep_failed", error=type(error).__name__, message=str(error))

    async with _every(every_s, tick):
        yield


@asynccontextmanager
async def run_reminders(
    reminder: asyncio.Event, *, every_s: float, should_run: Callable[[], bool]
) -> AsyncIterator[None]:
    """Set an event periodically while the block runs, for work that an earlier farm process did not finish.

    Args:
        reminder: the event.
        every_s: the period.
        should_run: returns True if this process does the work.
    """

    async def tick() -> None:
        if should_run():
            reminder.set()

    async with _every(every_s, tick):
        yield


@asynccontextmanager
async def run_periodic_tasks(database: Database, leader: PeriodicLeader) -> AsyncIterator[None]:
    """Run the leader's periodic tasks while the block runs."""

    async def tick() -> None:
        try:
            decision = await database.write_async(leader.tick)
            if decision is LeaseDecision.ACQUIRED:
                # Operators see it in the events.
                log.debug("leader_lease_acquired", process=leader.process)
        except FarmError as error:
            # A busy database: the next tick finds the rest.
            log.warning("tick_failed", code=error.code, message=error.message)

    try:
        async with _every(leader.every_s, tick):
            yield
    finally:
        with contextlib.suppress(FarmError):
            await database.write_async(leader.resign)


@asynccontextmanager
async def _every(every_s: float, tick: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    scheduler = AsyncIOScheduler(timezone=UTC)
    # A tick that is late by a clock that was set ahead still counts.
    job = scheduler.add_job(tick, _Period(every_s), max_instances=1, coalesce=True, misfire_grace_time=None)
    scheduler.start()
    following = asyncio.create_task(_follow_clock(job, every_s))
    try:
        yield
    finally:
        following.cancel()
        scheduler.shutdown(wait=False)


@BaseTrigger.register
class _Period:
    """Fire a period from now; the library's interval fires once for each period that a clock jumps over."""

    def __init__(self, every_s: float) -> None:
        self._every = timedelta(seconds=every_s)

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        return now + self._every


async def _follow_clock(job: Job, every_s: float) -> None:
    """Bring the next tick nearer where the wall clock, which the scheduler goes by, was set back."""
    while True:
        await asyncio.sleep(every_s)
        now = datetime.now(UTC)
        if job.next_run_time - now > timedelta(seconds=2 * every_s):
            job.modify(next_run_time=now)
