"""Batches of empty exchanges: they wait for each other for a moment, and one transaction records them all."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from farm.clock import Clock
from farm.core.base.ids import HostId, SessionId
from farm.core.errors import FarmBusy
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.services.agents.heartbeats import ExchangeCall, find_still_idle, record_idle_heartbeats

#: Time a call waits for others that are recorded with it. It would be held for much longer anyway.
BATCH_PAUSE_S = 0.25
#: Calls that are held for less are not batched.
_SHORT_S = 2 * BATCH_PAUSE_S
#: Calls of one transaction.
_MAX_BATCH = 1000
#: An idle host's calls are applied in full this often, whatever they report.
FULL_EVERY_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _LastHeartbeat:
    """A host's last call that was answered without news."""

    host_id: HostId
    session_id: SessionId
    #: A hash of the exchange without its number: there may be thousands of hosts.
    exchange_hash: int
    #: The next full exchange is not later, so that what time alone brings about is.
    until_s: float

    def is_like(self, call: ExchangeCall, now_s: float) -> bool:
        """Return whether a call has the same content, from the same session, and no full one is due."""
        same = (self.host_id, self.session_id) == (call.host_id, call.session_id)
        return same and now_s < self.until_s and self.exchange_hash == _hash(call)


class HeartbeatBatch:
    """Records and repeats the calls of idle agents together.

    The database decides which calls are idle, and authenticates them. Here it is only guessed which are worth
    the query: those with the credential and the content of the host's last call, which had no news.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._last_by_credential: dict[str, _LastHeartbeat] = {}
        self._credential_by_host: dict[HostId, str] = {}
        self._noting = _Batcher(self._note, pause_s=BATCH_PAUSE_S)
        self._looking = _Batcher(self._look)

    async def aclose(self) -> None:
        """Cancel the batches in progress: the farm stops, and their calls are not answered."""
        await self._noting.aclose()
        await self._looking.aclose()

    def find_caller_host(self, credential_hash: str) -> HostId | None:
        """Return the host whose last idle call had this credential; that alone authenticates no one."""
        last = self._last_by_credential.get(credential_hash)
        return None if last is None else last.host_id

    def may_be_idle(self, call: ExchangeCall) -> bool:
        """Return whether a call is like the host's last one, so that it is worth asking."""
        if call.exchange.wait_s < _SHORT_S or not call.has_only_devices:
            return False
        last = self._last_by_credential.get(call.credential_hash)
        return last is not None and last.is_like(call, self._clock.monotonic())

    async def notes(self, call: ExchangeCall) -> bool:
        """Apply a call if it is idle, and tell whether it was; otherwise nothing changes."""
        if await self._noting.includes(call):
            return True
        self._forget(call.host_id)
        return False

    def remember(self, call: ExchangeCall) -> None:
        """Remember a call as idle: the next may be like it."""
        if call.has_only_devices:
            self._forget(call.host_id)
            self._last_by_credential[call.credential_hash] = _LastHeartbeat(
                host_id=call.host_id,
                session_id=call.session_id,
                exchange_hash=_hash(call),
                until_s=self._clock.monotonic() + FULL_EVERY_S,
            )
            self._credential_by_host[call.host_id] = call.credential_hash

    def _forget(self, host_id: HostId) -> None:
        if (credential_hash := self._credential_by_host.pop(host_id, None)) is not None:
            self._last_by_credential.pop(credential_hash, None)

    async def is_still_idle(self, call: ExchangeCall) -> bool:
        """Return whether a call that was applied is still idle."""
        return call.has_only_devices and await self._looking.includes(call)

    async def _note(self, calls: Sequence[ExchangeCall]) -> frozenset[ExchangeCall]:
        return await self._database.write_async(bind_tx(record_idle_heartbeats, now=self._clock.now()), calls)

    async def _look(self, calls: Sequence[ExchangeCall]) -> frozenset[ExchangeCall]:
        return await self._database.peek_async(find_still_idle, calls)


class _Batcher:
    """Answers questions together that come within a pause, or while others are being answered."""

    def __init__(
        self,
        answer: Callable[[Sequence[ExchangeCall]], Awaitable[frozenset[ExchangeCall]]],
        *,
        pause_s: float = 0.0,
    ) -> None:
        self._answer = answer
        self._pause_s = pause_s
        self._one_at_a_time = asyncio.Lock()
        self._pending_calls: list[ExchangeCall] = []
        self._answered: asyncio.Task[frozenset[ExchangeCall]] | None = None
        #: All callers may go away before the answer is there.
        self._running_tasks: set[asyncio.Task[frozenset[ExchangeCall]]] = set()
        self._closed = False

    async def includes(self, call: ExchangeCall) -> bool:
        """Return whether the batch's answer includes a call; an error is raised in every waiting caller."""
        if self._closed:
            raise FarmBusy("the farm stops")
        if self._answered is None or len(self._pending_calls) >= _MAX_BATCH:
            self._pending_calls = []
            self._answered = asyncio.create_task(self._answer_batch(self._pending_calls))
            self._running_tasks.add(self._answered)
            self._answered.add_done_callback(self._running_tasks.discard)
        self._pending_calls.append(call)
        # A caller that goes away does not cancel the others' answer.
        return call in await asyncio.shield(self._answered)

    async def aclose(self) -> None:
        self._closed = True
        for task in self._running_tasks:
            task.cancel()
        await asyncio.gather(*self._running_tasks, return_exceptions=True)

    async def _answer_batch(self, calls: list[ExchangeCall]) -> frozenset[ExchangeCall]:
        await asyncio.sleep(self._pause_s)
        async with self._one_at_a_time:
            if calls is self._pending_calls:
                self._answered = None
            return await self._answer(calls)


def _hash(call: ExchangeCall) -> int:
    return hash(call.exchange.model_dump_json(exclude={"seq"}))
