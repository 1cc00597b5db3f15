"""An event loop on a thread of its own, for what has to go on while a test waits."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_STEP_S = 30.0
_ROUNDS = 5


class Looping:
    """Runs coroutines on its loop, and callbacks."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="looping", daemon=True)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Its value, waited for."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_STEP_S)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End what still runs, then the loop."""
        self.run(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STEP_S)
        self._loop.close()

    async def _cancel_all(self) -> None:
        # A task that is cancelled before it began cannot close what it was given.
        await _let_others_run()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # Transports close in the round after they were told to.
        await _let_others_run()


async def _let_others_run() -> None:
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)


@contextmanager
def looping() -> Iterator[Looping]:
    """A loop that runs while the block does."""
    loop = Looping()
    loop.start()
    try:
        yield loop
    finally:
        loop.stop()
