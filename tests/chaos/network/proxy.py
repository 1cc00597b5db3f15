"""A network that can be trusted with nothing: what stands between agents, or people, and the farm.

Each request is a connection of its own on both sides. Which request meets which mischief is armed beforehand,
so that a seed decides it. Several farm processes are taken in turn, as a load balancer does; one that refuses
connections is passed over.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import assert_never

from tests.chaos.network.http_message import Request, head_of, read_request

#: Reports have up to 8 MiB; buffers that hold a head are enough.
_LIMIT_BYTES = 256 * 1024


class Mischief(StrEnum):
    """What becomes of a request."""

    #: The farm never sees it, and the caller's connection ends.
    REQUEST_DROPPED = "request_dropped"
    #: The farm acts on it, and the caller never hears.
    ANSWER_DROPPED = "answer_dropped"
    #: The farm gets it twice; the caller hears the second answer.
    SENT_TWICE = "sent_twice"
    DELAYED = "delayed"
    #: The caller waits while a later request passes.
    OVERTAKEN = "overtaken"
    #: The caller's connection ends; the farm gets it after a later request.
    LATE = "late"
    #: Accepted and never answered: the connection stays half open.
    UNANSWERED = "unanswered"
    #: Status and header fields arrive, and nothing after.
    HEAD_ONLY = "head_only"
    #: Half of the answer arrives, then the connection ends.
    ANSWER_CUT = "answer_cut"
    #: Half of the request arrives at the farm, then both connections end.
    REQUEST_CUT = "request_cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """Waits for a request."""

    mischief: Mischief
    #: Part of the request's path.
    path: str
    #: How long at most what is held is held.
    hold_s: float


class Proxy:
    """Passes requests on, except those that run into a trap: each trap takes one."""

    def __init__(self, upstreams: Callable[[], Sequence[int]]) -> None:
        """`upstreams` gives the ports of the farm's processes."""
        self._upstreams = upstreams
        self._traps: list[Trap] = []
        self._turns = count()
        self._calm = asyncio.Event()
        self._passing: set[asyncio.Event] = set()
        self._server: asyncio.Server | None = None
        # The loop forgets a task whose caller hung up while the farm has not answered: nothing else holds it.
        self._tasks: set[asyncio.Task[None] | None] = set()
        #: What requests ran into.
        self.met: Counter[Mischief] = Counter()

    async def start(self, port: int) -> None:
        """Listen there."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, limit=_LIMIT_BYTES)

    async def stop(self) -> None:
        await self.calm()
        if self._server is not None:
            self._server.close()

    async def arm(self, trap: Trap) -> None:
        self._calm.clear()
        self._traps.append(trap)

    async def calm(self) -> None:
        """Take all traps away, and let go of what is held."""
        self._traps.clear()
        self._calm.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        with suppress(OSError, asyncio.CancelledError):
            if (request := await read_request(reader)) is not None:
                await self._pass(request, self._sprung(request.path), reader, writer)
        writer.close()
        self._tasks.discard(task)

    def _sprung(self, path: str) -> Trap | None:
        for trap in self._traps:
            if trap.path in path:
                self._traps.remove(trap)
                self.met[trap.mischief] += 1
                return trap
        return None

    async def _pass(
        self, request: Request, trap: Trap | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if trap is None:
            answer = await self._asked_for(request, reader)
        else:
            answer = await self._spoilt(request, trap, writer)
        writer.write(answer)
        await writer.drain()

    async def _spoilt(self, request: Request, trap: Trap, writer: asyncio.StreamWriter) -> bytes:
        """What is left of the answer for the caller."""
        match trap.mischief:
            case Mischief.REQUEST_DROPPED:
                return b""
            case Mischief.ANSWER_DROPPED:
                await self._ask(request)
                return b""
            case Mischief.SENT_TWICE:
                await self._ask(request)
                return await self._ask(request)
            case Mischief.DELAYED:
                await self._hold(self._calm, trap.hold_s)
                return await self._ask(request)
            case Mischief.OVERTAKEN:
                await self._overtaken(trap.hold_s)
                return await self._ask(request)
            case Mischief.LATE:
                writer.close()
                await self._overtaken(trap.hold_s)
                await self._ask(request)
                return b""
            case Mischief.UNANSWERED:
                await self._hold(self._calm, trap.hold_s)
                return b""
            case Mischief.HEAD_ONLY:
                writer.write(head_of(await self._ask(request)))
                await self._hold(self._calm, trap.hold_s)
                return b""
            case Mischief.ANSWER_CUT:
                answer = await self._ask(request)
                return answer[: len(answer) // 2]
            case Mischief.REQUEST_CUT:
                await self._send_half(request)
                return b""
            case _:
                assert_never(trap.mischief)

    async def _asked_for(self, request: Request, reader: asyncio.StreamReader) -> bytes:
        """The answer; nothing when the caller hangs up first, as agents do when they have news."""
        asking = asyncio.create_task(self._ask(request))
        hanging_up = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait((asking, hanging_up), return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else b""
        finally:
            asking.cancel()
            hanging_up.cancel()
            await asyncio.gather(asking, hanging_up, return_exceptions=True)

    async def _ask(self, request: Request) -> bytes:
        """The farm's whole answer, or as much of it as came."""
        reader, writer = await self._connected()
        try:
            writer.write(request.last_words)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
        for waiting in self._passing:
            waiting.set()
        return answer

    async def _send_half(self, request: Request) -> None:
        _, writer = await self._connected()
        words = request.last_words
        writer.write(words[: len(words) // 2])
        await writer.drain()
        writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ports = self._upstreams()
        turn = next(self._turns)
        for number in range(len(ports)):
            with suppress(ConnectionRefusedError):
                return await asyncio.open_connection("127.0.0.1", ports[(turn + number) % len(ports)])
        raise ConnectionRefusedError("no farm listens")

    async def _overtaken(self, hold_s: float) -> None:
        passed = asyncio.Event()
        self._passing.add(passed)
        try:
            await self._hold(passed, hold_s)
        finally:
            self._passing.discard(passed)

    async def _hold(self, until: asyncio.Event, hold_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(hold_s):
                await until.wait()
