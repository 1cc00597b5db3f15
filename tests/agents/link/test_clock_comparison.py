"""The host's clock is compared with the farm's at each session, after each pause, and after it was set."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

import httpx
import pytest

from agents.farm_api import FarmApi
from agents.host.config import AgentConfig
from agents.link.clock_comparison import EVERY_S, PAUSE_S, WHILE_OFF_S, ClockComparison
from farm.clock import ADOPT_AFTER_S
from farm.core.errors import FarmFault
from farm.core.operations.host_clock import ClockDifference
from farm.wire.agents.protocol import ClockReport, FarmTime
from tests.support.agents.fake_farm import FakeFarm, living
from tests.support.fake_clock import FakeClock

pytestmark = [pytest.mark.anyio, pytest.mark.fault(49)]


class Farm:
    """A farm whose clock stands still, at the end of networks of given delays."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.now: datetime = clock.now()
        #: Of the next calls: the way there, and back.
        self.delays_s: Iterator[tuple[float, float]] = iter(())
        self.answers = True
        self.reported: list[ClockDifference] = []
        self.heard = asyncio.Event()
        self.api = FarmApi(
            httpx.AsyncClient(transport=httpx.MockTransport(self._answer), base_url="http://farm")
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        there_s, back_s = next(self.delays_s, (0.0, 0.0))
        self.clock.advance(there_s)
        self.now += timedelta(seconds=there_s)
        answer = FarmTime(now=self.now)
        self.clock.advance(back_s)
        self.now += timedelta(seconds=back_s)
        if not self.answers:
            return httpx.Response(503)
        if (difference := ClockReport.model_validate_json(request.content).difference) is not None:
            self.reported.append(difference)
            self.heard.set()
        return httpx.Response(200, content=answer.model_dump_json())

    async def next_reported(self) -> ClockDifference:
        async with asyncio.timeout(120):
            await self.heard.wait()
        self.heard.clear()
        return self.reported[-1]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def farm(clock: FakeClock) -> Farm:
    return Farm(clock)


@pytest.fixture
async def comparison(farm: Farm, clock: FakeClock) -> ClockComparison:
    return ClockComparison(api=farm.api, clock=clock)


@asynccontextmanager
async def running(comparison: ClockComparison) -> AsyncIterator[None]:
    task = asyncio.create_task(comparison.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_of_slow_calls_the_quickest_counts(
    farm: Farm, clock: FakeClock, comparison: ClockComparison
) -> None:
    clock.jump(3600.0)
    farm.delays_s = iter([(8.0, 0.0), (1.0, 2.0), (0.0, 9.0)])
    assert await comparison.compare() == ClockDifference(ahead_s=3600.5, uncertainty_s=1.5)
    assert farm.reported == [ClockDifference(ahead_s=3600.5, uncertainty_s=1.5)]
    farm.delays_s = iter([(0.25, 0.25), (9.0, 9.0)])
    assert (await comparison.compare()).uncertainty_s == 0.25


async def test_clocks_are_compared_at_each_session_and_after_each_pause(
    farm: Farm, clock: FakeClock, comparison: ClockComparison
) -> None:
    async with running(comparison):
        comparison.request()
        assert not (await farm.next_reported()).is_off
        for _ in range(10):
            comparison.record_answer()
            clock.advance(PAUSE_S)
            farm.now += timedelta(seconds=PAUSE_S)
        # A machine that slept: its clock stood still, and nobody called.
        clock.jump(-8.0)
        clock.advance(0.1)
        comparison.record_answer()
        assert (await farm.next_reported()).ahead_s == pytest.approx(-7.9)
    assert len(farm.reported) == 2


async def test_clocks_are_compared_when_the_hosts_was_set_and_when_the_new_time_is_taken_over(
    farm: Farm, clock: FakeClock, comparison: ClockComparison
) -> None:
    async with running(comparison):
        comparison.request()
        await farm.next_reported()
        comparison.record_answer()
        clock.step(3600.0)
        comparison.record_answer()
        # Nothing is dated by it yet.
        assert (await farm.next_reported()).ahead_s == 0
        for _ in range(3):
            comparison.record_answer()
        clock.adopt_step()
        comparison.record_answer()
        assert (await farm.next_reported()).ahead_s == 3600
    assert len(farm.reported) == 3


async def test_a_farm_that_does_not_answer_is_asked_again_and_ends_no_agent(
    farm: Farm, comparison: ClockComparison
) -> None:
    farm.answers = False
    with pytest.raises(FarmFault):
        await comparison.compare()
    async with running(comparison):
        comparison.request()
        farm.answers = True
        comparison.request()
        await farm.next_reported()


def test_a_difference_is_looked_at_more_often_than_agreement() -> None:
    assert WHILE_OFF_S < ADOPT_AFTER_S < EVERY_S


async def test_an_agent_compares_its_clock_at_each_session(config: AgentConfig, played: FakeFarm) -> None:
    played.clock_ahead = timedelta(hours=1)
    async with living(config):
        await played.until(lambda: len(played.clock_differences) == 1)
        assert played.clock_differences[0].ahead_s == pytest.approx(-3600, abs=30)
        played.fenced = True
        await played.until(lambda: len(played.clock_differences) == 2)
