"""Parts of pages that many tabs ask for at once: computed once for all of them.

A change is told to all open tabs in one moment, and each fetches the same part. What one request computed
serves the others while no event was recorded since, and for a second at most: some of what pages show, such
as temperatures, changes without events.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from farm.store.operations.event_watermark import EventWatermark

#: A part is shared for so long.
SHARED_S = 1.0

PartKey = tuple[int, str, str]


class SharedParts:
    """The parts that were computed within the last second, and those that are being computed."""

    def __init__(self) -> None:
        self._parts: dict[PartKey, tuple[float, asyncio.Task[str]]] = {}

    async def get(
        self,
        watermark: EventWatermark,
        address: str,
        reader: str,
        compute: Callable[[], Coroutine[Any, Any, str]],
    ) -> str:
        """Return a part as HTML.

        Args:
            watermark: of the events, read before: what was computed at an earlier one is too old.
            address: of the part, with its filters.
            reader: who may see what it shows.
            compute: renders it; its errors are raised to all who wait for it, and are not kept.
        """
        if watermark.writers:
            # Events below the watermark may be recorded yet.
            return await compute()
        now = asyncio.get_running_loop().time()
        self._parts = {key: part for key, part in self._parts.items() if now - part[0] < SHARED_S}
        key = (watermark.event_id, address, reader)
        if key not in self._parts:
            task = asyncio.create_task(compute())
            self._parts[key] = (now, task)
            task.add_done_callback(lambda done: self._forget_failed(key, done))
        # One reader that goes away ends nothing for the others.
        return await asyncio.shield(self._parts[key][1])

    def _forget_failed(self, key: PartKey, task: asyncio.Task[str]) -> None:
        if (task.cancelled() or task.exception() is not None) and key in self._parts:
            del self._parts[key]
