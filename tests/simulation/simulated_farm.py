"""The farm's processes: up or not, with the real services behind them and the periodic duties."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from farm.api.agents.long_poll import answer_if_idle
from farm.api.context import Context
from farm.api.routes.agents import post_exchange, post_session
from farm.config import FarmConfig
from farm.core.base.ids import AttemptId, HostId, SessionId
from farm.core.errors import FarmBusy, FarmError, FarmUnreachable
from farm.core.results.settle.report import IncomingReport, ReportAnswer
from farm.database.engine import Database
from farm.database.notifications import ALL_HOSTS, HostNotification
from farm.database.transaction import bind_tx
from farm.services.agents.heartbeats import ExchangeCall
from farm.services.periodic.leader_election import PeriodicLeader, serving_period_since
from farm.wire.agents.protocol import Exchange, ExchangeAnswer, SessionAnswer, SessionOpening
from tests.support.farm.direct_calls import receive, settle
from tests.support.farm.service_fixture import FarmRig

Value = TypeVar("Value")
TICK_S = 10.0


class AtOnce(Database):
    """Carries everything out where it is asked for, so that no thread's pace decides what comes first."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.processes: list[Process] = []

    async def write_async(self, service: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        return self.telling(self.write, service, *args, **kwargs)

    async def read_async(self, service: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        return self.read(service, *args, **kwargs)

    async def peek_async(self, service: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        return self.read(service, *args, **kwargs)

    async def change_async(self, service: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        return self.change(service, *args, **kwargs)

    def change(self, service: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        """A write that every process hears of, as PostgreSQL tells them."""

        def run() -> Value:
            return self._submit(ALL_HOSTS, service, *args, **kwargs).result()

        return self.telling(run)

    def telling(self, write: Callable[..., Value], *args: Any, **kwargs: Any) -> Value:
        """Have every process hear whom a write concerns."""
        told: list[HostNotification] = []
        self.on_change = told.append
        result = write(*args, **kwargs)
        for wake in told:
            for process in self.processes:
                process.context.held_exchanges.wake(wake)
        return result


@dataclass
class Process:
    """One life of one farm process."""

    rig: FarmRig
    database: AtOnce
    random: Random
    name: str
    #: Refuses this share of calls, as a locked database does.
    busy: float = 0.0

    def __post_init__(self) -> None:
        now = self.rig.clock.now()
        self.up_since = now
        self.is_up = True
        self.duties = PeriodicLeader(
            process=self.name,
            clock=self.rig.clock,
            every_s=TICK_S,
            serving=serving_period_since(now, every_s=TICK_S),
        )
        self.context = Context(
            config=FarmConfig(),
            database=self.database,
            blobs=self.rig.blobs,
            clock=self.rig.clock,
            started_at=now,
        )

    def stop(self) -> None:
        """Killed: whoever is held hears nothing more."""
        self.is_up = False
        self.context.held_exchanges.close()

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
        """As `HeartbeatFastPath`, then the route."""
        (row,) = self.rig.rows("SELECT credential_hash FROM hosts WHERE host_id = :host", host=host)
        shown = row["credential_hash"]
        call = ExchangeCall(host_id=host, session_id=session, credential_hash=shown, exchange=said)

        async def answered() -> ExchangeAnswer:
            quiet = await answer_if_idle(self.context, call)
            return quiet or await post_exchange(session, said, host, self.context, shown)

        return await self._answered(answered)

    async def reports(
        self, host: HostId, bodies: Mapping[AttemptId, bytes]
    ) -> dict[AttemptId, ReportAnswer | FarmError]:
        """Those of one call, in one transaction, as `Together` has them settled."""

        async def settled() -> dict[AttemptId, ReportAnswer | FarmError]:
            now = self.rig.clock.now()
            incoming = [
                IncomingReport(host_id=host, attempt_id=each, body=body, at=now)
                for each, body in bodies.items()
            ]
            answers = self.database.change(receive, incoming)
            return dict(zip(bodies, answers, strict=True))

        return await self._answered(settled)

    async def report(self, host: HostId, attempt: AttemptId, body: bytes) -> ReportAnswer:
        async def settled() -> ReportAnswer:
            return self.database.change(bind_tx(settle, now=self.rig.clock.now()), host, attempt, body)

        return await self._answered(settled)

    def tick(self) -> None:
        """The periodic duties, once."""
        self.database.telling(self.database.write, self.duties.tick)

    async def ticking(self) -> None:
        """Tick while up, now and then late."""
        while self.is_up:
            await asyncio.sleep(self.random.choice([TICK_S, TICK_S, TICK_S, 2 * TICK_S]))
            if self.is_up:
                self.tick()
