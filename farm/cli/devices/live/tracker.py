"""TVM's tracker and the handshakes of its RPC, on one port for one phone: who has it, and for how long.

The protocols are those of TVM's clients (`tvm/rpc/tracker.py` and `server.py`). Both begin with a number, by
which they are distinguished. A session after its handshake is bytes for the program on the phone.
"""

import asyncio
import heapq
import json
import math
import secrets
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

TRACKER_MAGIC, RPC_MAGIC = 0x2F271, 0xFF271
_RPC_MISMATCH = RPC_MAGIC + 2
_INT = struct.Struct("<i")
_MAX_MESSAGE_BYTES = 64 * 1024
#: A client that was given the phone and does not connect loses it.
CLAIM_S = 10.0
_TIMEOUT = "-timeout="
#: Of clients that go away or violate the protocol.
_LOST = (EOFError, OSError, ValueError, RecursionError)

#: Serves one session of at most so many seconds, until the client or the phone ends it.
ServeSession = Callable[[StreamReader, StreamWriter, int], Awaitable[None]]


class TrackerCode(IntEnum):
    """The first element of a message to the tracker, and of answers."""

    FAIL = -1
    SUCCESS = 0
    PING = 1
    REQUEST = 4
    SUMMARY = 6


@dataclass(order=True, frozen=True, slots=True)
class _Request:
    """A client that waits: the highest priority first, then the earliest."""

    rank: tuple[int, int]
    writer: StreamWriter = field(compare=False)


class PhoneTracker:
    """Gives one phone to one client after the other.

    Invariant: at most one client has it: from the answer to its request until its session has ended, or until
    it has not connected for CLAIM_S.
    """

    def __init__(
        self,
        key: str,
        serve_session: ServeSession,
        remaining_s: Callable[[], float],
        *,
        about: Mapping[str, str],
        say: Callable[[str], None],
        claim_s: float = CLAIM_S,
    ) -> None:
        """Listen nowhere yet.

        Args:
            key: by which clients request the phone.
            serve_session: serves a client that has the phone.
            remaining_s: the longest possible session now.
            about: what the summary says of the phone beside its key.
            say: tells the person that holds the phone which session failed.
            claim_s: until when a client has to connect.
        """
        self._key = key
        self._serve_session = serve_session
        self._remaining_s = remaining_s
        self._about = about
        self._say = say
        self._claim_s = claim_s
        self._requests: list[_Request] = []
        self._count = 0
        #: What the client that has the phone connects with; None once it has, or where no one has it.
        self._match_key: str | None = None
        self._is_serving = False
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one connection, of either protocol, until its end."""
        # In a task of its own: asyncio reports it as an error where that of a connection is cancelled.
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        await asyncio.wait([connection])
        self._connections.discard(connection)

    async def close(self) -> None:
        """End all connections; the client whose session ends by that has no successor."""
        self._requests.clear()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            with suppress(*_LOST):
                match await _number(reader):
                    case int(number) if number == TRACKER_MAGIC:
                        writer.write(_INT.pack(TRACKER_MAGIC))
                        await self._track(reader, writer)
                    case int(number) if number == RPC_MAGIC:
                        await self._connect(reader, writer)
        finally:
            self._requests = [each for each in self._requests if each.writer is not writer]
            heapq.heapify(self._requests)
            writer.close()

    async def _track(self, reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            message = json.loads(await _sized(reader))
            match message:
                case [TrackerCode.PING]:
                    _answer(writer, TrackerCode.SUCCESS)
                case [TrackerCode.SUMMARY]:
                    _answer(writer, [TrackerCode.SUCCESS, self._summary(writer)])
                case [TrackerCode.REQUEST, self._key, _, int(priority), *_]:
                    self._count += 1
                    heapq.heappush(self._requests, _Request((-priority, self._count), writer))
                    self._give_on()
                case [TrackerCode.REQUEST, key, *_] if key != self._key:
                    # TVM's own tracker would have the client wait for ever.
                    _answer(writer, [TrackerCode.FAIL, f"no phone has the key {key!r}, only {self._key!r}"])
                case [TrackerCode.REQUEST, *_]:
                    _answer(writer, [TrackerCode.FAIL, "a request has a key, a user and a whole priority"])
                case _:
                    # Servers register themselves at TVM's tracker; this one has its phone.
                    _answer(writer, TrackerCode.FAIL)
            await writer.drain()

    def _summary(self, writer: StreamWriter) -> Mapping[str, Any]:
        is_free = self._match_key is None and not self._is_serving
        queue = {"free": int(is_free), "pending": len(self._requests)}
        server = {"key": f"server:{self._key}", "addr": _address(writer), **self._about}
        return {"queue_info": {self._key: queue}, "server_info": [server]}

    def _give_on(self) -> None:
        """Give the phone to the client whose turn it is, if no one has it."""
        while self._requests and self._match_key is None and not self._is_serving:
            writer = heapq.heappop(self._requests).writer
            if not writer.is_closing():
                match_key = self._match_key = f"{self._key}:{secrets.token_hex(8)}"
                _answer(writer, [TrackerCode.SUCCESS, [*_address(writer), match_key]])
                asyncio.get_running_loop().call_later(self._claim_s, self._take_back, match_key)

    def _take_back(self, match_key: str) -> None:
        if self._match_key == match_key:
            self._match_key = None
            self._give_on()

    async def _connect(self, reader: StreamReader, writer: StreamWriter) -> None:
        name, *options = (await _sized(reader)).decode().split()
        if self._match_key is None or name != f"client:{self._match_key}":
            writer.write(_INT.pack(_RPC_MISMATCH))
            return
        self._match_key, self._is_serving = None, True
        try:
            own_name = f"server:{self._key}".encode()
            writer.write(_INT.pack(RPC_MAGIC) + _INT.pack(len(own_name)) + own_name)
            session_s = _session_s(options, self._remaining_s())
            try:
                await self._serve_session(reader, writer, session_s)
            except _LOST as error:
                self._say(f"A session has failed: {error}.")
        finally:
            self._is_serving = False
            self._give_on()


def _session_s(options: list[str], remaining_s: float) -> int:
    """Return the whole seconds of a session whose client may have limited it."""
    given = [float(word.removeprefix(_TIMEOUT)) for word in options if word.startswith(_TIMEOUT)]
    wanted = [value for value in given if math.isfinite(value) and value > 0]
    return max(1, math.ceil(min([remaining_s, *wanted])))


def _address(writer: StreamWriter) -> tuple[str, int]:
    """Return where the client reached this port: through a tunnel it is the same."""
    host, port, *_ = writer.get_extra_info("sockname")
    return host, port


def _answer(writer: StreamWriter, value: object) -> None:
    text = json.dumps(value).encode()
    writer.write(_INT.pack(len(text)) + text)


async def _number(reader: StreamReader) -> int:
    [number] = _INT.unpack(await reader.readexactly(_INT.size))
    return int(number)


async def _sized(reader: StreamReader) -> bytes:
    size = await _number(reader)
    if not 0 < size <= _MAX_MESSAGE_BYTES:
        raise ValueError(f"a message of {size} bytes")
    return await reader.readexactly(size)
