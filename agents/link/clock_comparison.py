"""Comparison of this host's clock with the farm's: at each start of a session, and after each pause."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

import structlog

from agents.farm_api import FarmApi
from farm.clock import Clock
from farm.core.errors import FarmError
from farm.core.operations.host_clock import ClockDifference, clock_difference

log = structlog.get_logger(__name__)

#: Three times the longest interval between two calls: the network was down, or this machine was suspended.
PAUSE_S = 30.0
#: A crystal drifts by less than half a second in this time.
EVERY_S = 3600.0
#: While the clocks differ, so that the farm hears soon that it is over; or the farm did not answer.
WHILE_OFF_S = 60.0
#: A round trip up to this is short enough; of longer ones, the shortest of several counts.
SHORT_S = 1.0
_TRIES = 3


@dataclass(eq=False, kw_only=True)
class ClockComparison:
    """Tells the farm how far the clock that dates this host's evidence is from its own.

    The agent itself decides nothing by that clock, so it goes on whatever the difference.
    """

    api: FarmApi
    clock: Clock
    _due: asyncio.Event = field(default_factory=asyncio.Event)
    _answered_at_s: float | None = None
    _is_stepped: bool = False

    def request(self) -> None:
        """Compare as soon as possible: a session was opened."""
        self._due.set()

    def record_answer(self) -> None:
        """Record an answer of the farm; compare after a pause, and after this machine's clock was set."""
        now_s, is_stepped = self.clock.monotonic(), bool(self.clock.step_s())
        was_paused = self._answered_at_s is not None and now_s - self._answered_at_s > PAUSE_S
        if was_paused or is_stepped is not self._is_stepped:
            self.request()
        self._answered_at_s, self._is_stepped = now_s, is_stepped

    async def run(self) -> NoReturn:
        """Compare when it is due, and periodically; the first time at the first session."""
        await self._due.wait()
        while True:
            self._due.clear()
            wait_s = WHILE_OFF_S
            try:
                difference = await self.compare()
            except FarmError as error:
                log.info("clocks_not_compared", code=error.code, reason=error.message)
            else:
                wait_s = WHILE_OFF_S if difference.is_off else EVERY_S
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._due.wait()

    async def compare(self) -> ClockDifference:
        """Ask the farm for its time, and report the difference.

        Raises:
            FarmError: the farm does not answer, or its own clock is off.
        """
        difference = await self._measure()
        for _ in range(_TRIES - 1):
            if difference.uncertainty_s <= SHORT_S / 2:
                break
            difference = min(difference, await self._measure(), key=lambda each: each.uncertainty_s)
        await self.api.compare_clocks(difference)
        if difference.is_off:
            log.warning("clock_off", ahead_s=difference.ahead_s, uncertainty_s=difference.uncertainty_s)
        return difference

    async def _measure(self) -> ClockDifference:
        asked_at, asked_at_s = self.clock.now(), self.clock.monotonic()
        farm_time = (await self.api.compare_clocks(None)).now
        return clock_difference(asked_at, farm_time, self.clock.monotonic() - asked_at_s)
