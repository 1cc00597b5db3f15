"""The limits of storage are enforced again and again, whatever one sweep runs into."""

import asyncio
import threading

import pytest

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

    async with asyncio.timeout(30), run_sweeps(sweep, every_s=0.01):
        await again.wait()
    assert threading.get_ident() not in threads
