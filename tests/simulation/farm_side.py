"""The farm's processes: up or not, with the real services behind them and the periodic duties."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar, cast

from farm_rig import FarmRig
from sqlalchemy.engine import Connection

from farm.api.agent_routes import post_exchange, post_session
from farm.api.context import Context
from farm.config import FarmConfig
from farm.clock import Clock
from farm.core.errors import FarmBusy, FarmUnreachable
from farm.core.ids import AttemptId, HostId, SessionId
from farm.services.duties import Duties, serving_since
from farm.services.settle import settle
from farm.store.clock_check import ClockCheck
from farm.store.database import Database
from farm.wire.agent import Exchange, ExchangeAnswer, ReportAnswer, SessionAnswer, SessionOpening

Value = TypeVar("Value")
TICK_S = 5.0


class AtOnce:
    """A database whose asynchronous calls are carried out where they are made: no threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write_async(self, service: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        return self._database.write(service, *args, **kwargs)

    async def read_async(self, service: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        return self._database.read(service, *args, **kwargs)


class NoOtherClock(ClockCheck):
    """The database server's clock does not leap with ours."""

    def look(self, connection: Connection, clock: Clock) -> bool:
        return True


@dataclass
class Process:
    """One life of one farm process."""

    rig: FarmRig
    random: Random
    name: str
    #: Refuses this share of calls, as a locked database does.
    busy: float = 0.0

    def __post_init__(self) -> None:
        now = self.rig.clock.now()
        self.up_since = now
        self.is_up = True
        self.duties = Duties(
            process=self.name,
            clock=self.rig.clock,
            every_s=TICK_S,
            serving=serving_since(now, every_s=TICK_S),
            clock_check=NoOtherClock(),
        )
        self.context = Context(
            config=FarmConfig(),
            database=cast(Database, AtOnce(self.rig.database)),
            blobs=self.rig.blobs,
            clock=self.rig.clock,
            started_at=now,
        )

    def stop(self) -> None:
        """Killed: whoever is held hears nothing more."""
        self.is_up = False
        self.context.waiters.close()

    async def _answered(self, handle: Callable[[], Awaitable[Value]]) -> Value:
        if not self.is_up:
            raise FarmUnreachable("nobody listens")
        if self.random.random() < self.busy:
            raise FarmBusy("the database is locked")
        answer = await handle()
        if not self.is_up:
            raise FarmUnreachable("it went away")
        return answer

    async def open_session(self, host: HostId, opening: SessionOpening) -> SessionAnswer:
        return await self._answered(lambda: post_session(opening, host, self.context))

    async def exchange(self, host: HostId, session: SessionId, said: Exchange) -> ExchangeAnswer:
        return await self._answered(lambda: post_exchange(session, said, host, self.context))

    async def report(self, host: HostId, attempt: AttemptId, body: bytes) -> ReportAnswer:
        async def settled() -> ReportAnswer:
            answer = self.rig.write(settle, host, attempt, body, now=self.rig.clock.now())
            self.context.waiters.wake()
            return answer

        return await self._answered(settled)

    def tick(self) -> None:
        """The periodic duties, once."""
        self.rig.write(self.duties.tick)
        self.context.waiters.wake()

    async def ticking(self) -> None:
        """Tick while up, now and then late."""
        while self.is_up:
            await asyncio.sleep(self.random.choice([TICK_S, TICK_S, TICK_S, 2 * TICK_S]))
            if self.is_up:
                self.tick()
