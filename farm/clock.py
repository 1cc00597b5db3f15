"""Time sources that farm and agent receive as a parameter."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

#: Corrections of a wall clock by up to this are followed at once; a greater one is a step.
STEP_S = 5.0
#: A step that lasts for so long is a correction; one that was a mistake is over by then.
ADOPT_AFTER_S = 300.0


class Clock(Protocol):
    """The time source of farm and agent; tests pass one that stands still."""

    def now(self) -> datetime:
        """Return the time, aware, UTC: for people and for the database, never for waiting."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start, which never jump."""

    def step_s(self) -> float:
        """Return how far the machine's wall clock was set ahead of `now`; 0 while they agree."""

    def adopt_step(self) -> None:
        """Have `now` return the machine's wall clock."""


def _passed_s() -> float:
    """Return CLOCK_BOOTTIME, which counts while a machine sleeps; CLOCK_MONOTONIC without such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SystemClock:
    """The machine's clocks. `now` passes evenly: a wall clock that was set is believed once that has lasted.

    A person or a time server may set the wall clock to a wrong time and back. What lasts for less than
    `ADOPT_AFTER_S` brings no deadline nearer and prolongs none.
    """

    def __init__(
        self,
        *,
        adopts: bool = True,
        wall_s: Callable[[], float] = time.time,
        passed_s: Callable[[], float] = _passed_s,
    ) -> None:
        """Believe the wall clock as it is.

        Args:
            adopts: False if only `adopt_step` makes a step believed.
            wall_s: the wall clock, in seconds since 1970.
            passed_s: seconds from an arbitrary start.
        """
        self._adopts = adopts
        self._wall_s = wall_s
        self._passed_s = passed_s
        self._lock = threading.Lock()
        #: 1970 by `passed_s`: as believed, and as the wall clock has had it since a time.
        self._offset_s = wall_s() - passed_s()
        self._set_offset_s, self._set_at_s = self._offset_s, passed_s()

    def now(self) -> datetime:
        """Return the time in UTC."""
        with self._lock:
            passed_s = self._look()
            return datetime.fromtimestamp(passed_s + self._offset_s, UTC)

    def monotonic(self) -> float:
        """Return the seconds that passed, those of a machine's sleep included: a lease ends in it, too."""
        return self._passed_s()

    def step_s(self) -> float:
        """Return how far the wall clock is ahead of `now`; 0 while they agree."""
        with self._lock:
            self._look()
            return self._set_offset_s - self._offset_s

    def adopt_step(self) -> None:
        """Believe the wall clock from now on."""
        with self._lock:
            self._look()
            self._offset_s = self._set_offset_s

    def _look(self) -> float:
        """Compare both clocks; return the time that passed."""
        passed_s = self._passed_s()
        offset_s = self._wall_s() - passed_s
        if abs(offset_s - self._set_offset_s) > STEP_S:
            self._set_at_s = passed_s
        self._set_offset_s = offset_s
        has_lasted = self._adopts and passed_s - self._set_at_s >= ADOPT_AFTER_S
        if has_lasted or abs(offset_s - self._offset_s) <= STEP_S:
            self._offset_s = offset_s
        return passed_s
