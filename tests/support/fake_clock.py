"""A clock that moves when told to."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Implements farm.clock.Clock."""

    def __init__(self) -> None:
        self._now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
        self._monotonic = 1000.0
        self._step_s = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def step_s(self) -> float:
        return self._step_s

    def adopt_step(self) -> None:
        self.jump(self._step_s)
        self._step_s = 0.0

    def step(self, seconds: float) -> None:
        """Set the machine's wall clock, for so short a time that nobody believes it."""
        self._step_s = seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock, as a person or a broken time server does: no time passes."""
        self._now += timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
