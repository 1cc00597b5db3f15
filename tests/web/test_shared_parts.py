"""Parts are computed once for many tabs, and never shared beyond a change or an error."""

import asyncio

import pytest

from farm.store.operations.event_watermark import EventWatermark
from farm.web.http.shared_parts import SharedParts


def at(event_id: int, *writers: str) -> EventWatermark:
    return EventWatermark(event_id=event_id, writers=frozenset(writers))


class Part:
    """Counts how often it is computed."""

    def __init__(self) -> None:
        self.computed = 0

    async def __call__(self) -> str:
        self.computed += 1
        number = self.computed
        await asyncio.sleep(0)
        if number == 3:
            raise ValueError("no")
        return f"part {number}"


def test_many_tabs_share_a_part_until_something_changes() -> None:
    async def ask() -> None:
        parts, part = SharedParts(), Part()
        tabs = [parts.get(at(7), "/?part=work", "ann", part) for _ in range(100)]
        assert set(await asyncio.gather(*tabs)) == {"part 1"}
        assert await parts.get(at(8), "/?part=work", "ann", part) == "part 2"
        for _ in range(2):
            # An error is told, and not kept.
            part.computed = 2
            with pytest.raises(ValueError, match="no"):
                await parts.get(at(9), "/?part=work", "ann", part)
        part.computed = 3
        assert await parts.get(at(9), "/?part=work", "ann", part) == "part 4"

    asyncio.run(ask())


def test_a_part_is_for_its_reader_and_its_filters_only() -> None:
    async def ask() -> None:
        parts, part = SharedParts(), Part()
        first = await parts.get(at(7), "/?part=work", "ann", part)
        assert await parts.get(at(7), "/?part=work", "bob", part) != first
        part.computed = 10
        assert await parts.get(at(7), "/?part=alarms", "ann", part) == "part 11"
        # What is not yet recorded may be below the watermark.
        assert await parts.get(at(7, "writer"), "/?part=work", "ann", part) == "part 12"

    asyncio.run(ask())


def test_a_tab_that_closes_ends_nothing_for_the_others() -> None:
    async def ask() -> None:
        parts, part = SharedParts(), Part()
        first = asyncio.ensure_future(parts.get(at(7), "/", "ann", part))
        second = asyncio.ensure_future(parts.get(at(7), "/", "ann", part))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "part 1"

    asyncio.run(ask())
