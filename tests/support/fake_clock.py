"""A clock that moves when told to."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Implements farm.clock.Clock."""

    def __init__(self) -> None:
        self._now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
        self._monotonic = 1000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def jump(self, seconds: float) -> None:
        """Set the wall clock, as a person or a broken time server does: no time passes."""
        self._now += timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
