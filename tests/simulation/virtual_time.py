"""An event loop whose time passes only while everybody waits."""

import asyncio
import selectors
from collections.abc import Mapping

from tests.support.fake_clock import FakeClock


class _Leaping(selectors.BaseSelector):
    """Instead of waiting, moves the clock."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._inner = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits, and for nothing")
        if timeout > 0:
            # Wall clocks count microseconds: a shorter step would move one clock and not the other.
            self._clock.advance(max(timeout, 1e-6))
        return self._inner.select(0)

    def register(self, fileobj: int, events: int, data: object = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: int) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def get_map(self) -> Mapping[int, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs what is ready; when nothing is, time leaps to the next thing that will be."""

    def __init__(self, clock: FakeClock) -> None:
        self._virtual_clock = clock
        super().__init__(_Leaping(clock))

    def time(self) -> float:
        return self._virtual_clock.monotonic()
