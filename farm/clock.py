"""Time, as something that is handed in."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time source of farm and agent; tests pass one that stands still."""

    def now(self) -> datetime:
        """Return the wall clock, aware, UTC: for people and for the database, never for waiting."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start, which never jump."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """Return the wall clock in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return CLOCK_MONOTONIC."""
        return time.monotonic()


class HostClock(SystemClock):
    """The clocks of a machine that may sleep while others go on counting: a lease ends during sleep, too."""

    def monotonic(self) -> float:
        """Return CLOCK_BOOTTIME; CLOCK_MONOTONIC where a system has no such clock."""
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
