"""Retry of calls that fail because a device or a server is away for a moment."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from agents.host.backoff import Backoff
from farm.clock import Clock
from farm.core.errors import AdbServerDown, DeviceOffline, DeviceProtocol, FarmError

Value = TypeVar("Value")

#: Errors while a device or adb's server is away.
DEVICE_AWAY: tuple[type[FarmError], ...] = (DeviceOffline, DeviceProtocol, AdbServerDown)


class TransportRetry:
    """Retries with increasing delays, up to 5 s."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random

    async def call(
        self,
        call: Callable[[], Awaitable[Value]],
        *,
        away_s: float,
        away: tuple[type[FarmError], ...] = DEVICE_AWAY,
    ) -> Value:
        """Return the value of a call that may be repeated.

        Args:
            call: what is wanted.
            away_s: after this a failure is final.
            away: failures of other kinds are final at once.
        """
        # A device is called at most once in a second.
        backoff = Backoff(self._random, first_s=1.0, cap_s=5.0)
        give_up_s = self._clock.monotonic() + away_s
        while True:
            try:
                return await call()
            except away:
                if self._clock.monotonic() >= give_up_s:
                    raise
                await asyncio.sleep(backoff.next_s())
