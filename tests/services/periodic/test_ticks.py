"""The limits of storage are enforced again and again, whatever one sweep runs into."""

import asyncio
import threading
from datetime import datetime, timedelta, tzinfo

import pytest
from apscheduler.schedulers import base as scheduler_module

from farm import ticks
from farm.core.errors import FarmBusy
from farm.ticks import run_sweeps

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("error", [FarmBusy("locked"), OSError("the disk is gone")])
async def test_a_sweep_that_fails_is_followed_by_the_next_off_the_event_loop(error: Exception) -> None:
    threads: list[int] = []
    loop, again = asyncio.get_running_loop(), asyncio.Event()

    def sweep() -> None:
        threads.append(threading.get_ident())
        if len(threads) == 1:
            raise error
        loop.call_soon_threadsafe(again.set)

    async with asyncio.timeout(120), run_sweeps(sweep, every_s=0.01):
        await again.wait()
    assert threading.get_ident() not in threads


class SetClock(datetime):
    """A wall clock that somebody has set."""

    off = timedelta(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.now(tz) + cls.off


@pytest.mark.parametrize("off", [timedelta(days=-365), timedelta(days=365)])
async def test_ticks_go_on_at_their_pace_after_the_wall_clock_was_set(
    off: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A year back would be waited for, and a year ahead would be walked through."""
    for module in (ticks, scheduler_module):
        monkeypatch.setattr(module, "datetime", SetClock)
    monkeypatch.setattr(SetClock, "off", timedelta(0))
    loop, ticked, count = asyncio.get_running_loop(), asyncio.Event(), 0

    def sweep() -> None:
        nonlocal count
        count += 1
        loop.call_soon_threadsafe(ticked.set)

    async with asyncio.timeout(120), run_sweeps(sweep, every_s=0.05):
        await ticked.wait()
        SetClock.off = off
        at_step, began_s = count, loop.time()
        while count < at_step + 3:
            ticked.clear()
            await ticked.wait()
        assert count - at_step <= (loop.time() - began_s) / 0.05 + 2
