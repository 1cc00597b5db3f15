"""Back-off, and retry of calls that fail because a device or a server is away for a moment."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from farm.clock import Clock
from farm.core.errors import AdbServerDown, DeviceOffline, DeviceProtocol, FarmError

Value = TypeVar("Value")

#: Errors while a device or adb's server is away.
DEVICE_AWAY: tuple[type[FarmError], ...] = (DeviceOffline, DeviceProtocol, AdbServerDown)


@dataclass(eq=False)
class TransportRetry:
    """Retries with increasing delays, up to 5 s."""

    clock: Clock
    random: Random

    async def call(
        self,
        call: Callable[[], Awaitable[Value]],
        *,
        away_s: float,
        away: tuple[type[FarmError], ...] = DEVICE_AWAY,
    ) -> Value:
        """Return the value of a call that may be repeated; other errors, or one after `away_s`, are final."""
        # A device is called at most once in a second.
        backoff = Backoff(self.random, first_s=1.0, cap_s=5.0)
        give_up_s = self.clock.monotonic() + away_s
        while True:
            try:
                return await call()
            except away:
                if self.clock.monotonic() >= give_up_s:
                    raise
                await asyncio.sleep(backoff.next_s())


class Backoff:
    """The delays after consecutive failures.

    Invariant: every delay lies between `first_s` and `cap_s`, so an operation that fails is retried at most
    once in `first_s`.
    """

    def __init__(self, random: Random, *, first_s: float = 1.0, cap_s: float = 30.0) -> None:
        self._random = random
        self._first_s = first_s
        self._cap_s = cap_s
        self._failures = 0

    def next_s(self) -> float:
        """Return the delay after one more failure, in seconds."""
        ceiling = min(self._cap_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return self._random.uniform(max(self._first_s, ceiling / 2), ceiling)

    def reset(self) -> None:
        """Start again from the first delay after a success."""
        self._failures = 0
