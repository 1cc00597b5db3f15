"""A tracker of one phone: who has it, in which order, and for how long. The protocol is TVM's."""

import asyncio
import json
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from farm.cli.devices.live.tracker import CLAIM_S, RPC_MAGIC, TRACKER_MAGIC, PhoneTracker, TrackerCode

pytestmark = pytest.mark.anyio

MISMATCH = RPC_MAGIC + 2
#: Longer than a test: what waits so long waits for ever.
LONG_S = 3600.0


@dataclass
class Phone:
    """Sessions that echo until the client has gone, and how long each might last."""

    seconds: list[int] = field(default_factory=list)
    #: Raised by its sessions.
    error: Exception | None = None

    async def serve(self, reader: StreamReader, writer: StreamWriter, seconds: int) -> None:
        self.seconds.append(seconds)
        if self.error is not None:
            raise self.error
        while data := await reader.read(100):
            writer.write(data)


@dataclass
class Client:
    """One connection, with numbers and texts as TVM writes them."""

    reader: StreamReader
    writer: StreamWriter

    async def number(self) -> int:
        return struct.unpack("<i", await self.reader.readexactly(4))[0]

    async def text(self) -> str:
        return (await self.reader.readexactly(await self.number())).decode()

    def send(self, magic: int) -> None:
        self.writer.write(struct.pack("<i", magic))

    def say(self, text: str) -> None:
        self.writer.write(struct.pack("<i", len(text)) + text.encode())

    async def ask(self, *message: object) -> Any:
        self.say(json.dumps(message))
        return json.loads(await self.text())

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionResetError:
            # Something was on its way.
            return True


@dataclass
class Lab:
    port: int
    phone: Phone
    end: Callable[[], Awaitable[None]]
    #: To the person that holds the phone.
    said: list[str]
    writers: list[StreamWriter] = field(default_factory=list)

    async def open(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self.writers.append(client.writer)
        return client

    async def connect(self, magic: int) -> Client:
        client = await self.open()
        client.send(magic)
        return client

    async def close(self) -> None:
        for writer in self.writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def tracker(self) -> Client:
        client = await self.connect(TRACKER_MAGIC)
        assert await client.number() == TRACKER_MAGIC
        return client

    async def rpc(self, words: str) -> tuple[Client, int]:
        """A client of the phone, and what it is answered."""
        client = await self.connect(RPC_MAGIC)
        client.say(f"client:{words}")
        return client, await client.number()

    async def session(self, match_key: str) -> Client:
        client, answer = await self.rpc(match_key)
        assert (answer, await client.text()) == (RPC_MAGIC, "server:pixel")
        return client

    async def request(self, priority: int = 1) -> "asyncio.Task[str]":
        """Ask for the phone, and return when the tracker knows it; the task has the key of the connection."""
        client, before = await self.tracker(), await self.pending()
        client.say(json.dumps([TrackerCode.REQUEST, "pixel", "", priority]))
        given = asyncio.create_task(self._given(client))
        await self.until(lambda pending: given.done() or pending > before)
        return given

    async def until(self, is_met: Callable[[int], bool]) -> None:
        """Wait for a number of waiting clients."""
        for _ in range(1000):
            if is_met(await self.pending()):
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it did not come about")

    async def _given(self, client: Client) -> str:
        code, (host, port, match_key) = json.loads(await client.text())
        assert (code, host, port) == (TrackerCode.SUCCESS, "127.0.0.1", self.port)
        return str(match_key)

    async def pending(self) -> int:
        _, summary = await (await self.tracker()).ask(TrackerCode.SUMMARY)
        return int(summary["queue_info"]["pixel"]["pending"])


@asynccontextmanager
async def running(*, remaining_s: float = LONG_S, claim_s: float = CLAIM_S) -> AsyncIterator[Lab]:
    phone, said = Phone(), list[str]()
    about = {"device": "bench-a"}
    tracker = PhoneTracker(
        "pixel", phone.serve, lambda: remaining_s, about=about, say=said.append, claim_s=claim_s
    )
    server = await asyncio.start_server(tracker.serve, "127.0.0.1", 0)
    lab = Lab(server.sockets[0].getsockname()[1], phone, tracker.close, said)
    try:
        yield lab
    finally:
        server.close()
        await tracker.close()
        await lab.close()


async def test_the_summary_says_which_phone_it_is_and_whether_it_is_free() -> None:
    async with running() as lab:
        client = await lab.tracker()
        assert await client.ask(TrackerCode.PING) == TrackerCode.SUCCESS
        code, summary = await client.ask(TrackerCode.SUMMARY)
        assert code == TrackerCode.SUCCESS
        [server] = summary["server_info"]
        assert server == {"key": "server:pixel", "addr": ["127.0.0.1", lab.port], "device": "bench-a"}
        assert summary["queue_info"] == {"pixel": {"free": 1, "pending": 0}}
        await lab.session(await (await lab.request()))
        _, summary = await client.ask(TrackerCode.SUMMARY)
        assert summary["queue_info"] == {"pixel": {"free": 0, "pending": 0}}


async def test_one_client_after_the_other_has_the_phone_and_priority_comes_before_time() -> None:
    async with running() as lab:
        first = await lab.session(await (await lab.request()))
        low, early, late = [await lab.request(priority) for priority in (0, 9, 9)]
        for waiting in (early, late, low):
            assert not waiting.done()
            first.writer.close()
            first = await lab.session(await waiting)
        first.writer.write(b"bytes of the session")
        assert await first.reader.readexactly(20) == b"bytes of the session"
        assert len(lab.phone.seconds) == 4


async def test_a_request_for_another_key_is_answered_and_does_not_wait() -> None:
    async with running() as lab:
        code, reason = await (await lab.tracker()).ask(TrackerCode.REQUEST, "mate", "", 1)
        assert (code, reason) == (TrackerCode.FAIL, "no phone has the key 'mate', only 'pixel'")


@pytest.mark.parametrize("rest", [["", "high"], ["", 1.5], [""], []])
async def test_a_request_without_a_priority_is_not_answered_as_one_for_another_key(
    rest: list[object],
) -> None:
    async with running() as lab:
        code, reason = await (await lab.tracker()).ask(TrackerCode.REQUEST, "pixel", *rest)
        assert (code, reason) == (TrackerCode.FAIL, "a request has a key, a user and a whole priority")


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "No such file", "adb"), ValueError("adb"), EOFError("adb")]
)
async def test_a_session_that_fails_is_reported_and_the_next_client_has_the_phone(error: Exception) -> None:
    async with running() as lab:
        lab.phone.error = error
        failed = await lab.session(await (await lab.request()))
        assert await failed.is_closed()
        assert lab.said == [f"A session has failed: {error}."]
        lab.phone.error = None
        client = await lab.session(await (await lab.request()))
        client.writer.write(b"here")
        assert await client.reader.readexactly(4) == b"here"


async def test_no_client_connects_that_was_not_given_the_phone() -> None:
    async with running() as lab:
        given = await (await lab.request())
        for words in ("pixel", "pixel:0", f"{given}0"):
            client, answer = await lab.rpc(words)
            assert answer == MISMATCH
            assert await client.is_closed()
        await lab.session(given)
        # A key is good for one connection.
        _, answer = await lab.rpc(given)
        assert answer == MISMATCH
        assert len(lab.phone.seconds) == 1


async def test_a_client_that_does_not_connect_loses_the_phone_to_the_next() -> None:
    async with running(claim_s=0.2) as lab:
        idle = await (await lab.request())
        following = await (await lab.request())
        _, answer = await lab.rpc(idle)
        assert answer == MISMATCH
        await lab.session(following)


async def test_a_client_that_waited_and_has_gone_is_not_given_the_phone() -> None:
    async with running() as lab:
        busy = await lab.session(await (await lab.request()))
        gone = await lab.tracker()
        gone.say(json.dumps([TrackerCode.REQUEST, "pixel", "", 9]))
        await lab.until(lambda pending: pending == 1)
        gone.writer.close()
        await lab.until(lambda pending: pending == 0)
        stays = await lab.request()
        busy.writer.close()
        await lab.session(await stays)


@pytest.mark.parametrize(
    ("option", "remaining_s", "seconds"),
    [
        ("", 90.0, 90),
        (" -timeout=2.5", 90.0, 3),
        (" -timeout=600", 89.2, 90),
        (" -timeout=0", 90.0, 90),
        (" -timeout=nan", 90.0, 90),
        ("", -1.0, 1),
    ],
)
async def test_a_session_lasts_as_long_as_its_client_asks_and_the_hold_allows(
    option: str, remaining_s: float, seconds: int
) -> None:
    async with running(remaining_s=remaining_s) as lab:
        client = await lab.session(await (await lab.request()) + option)
        client.writer.close()
        assert lab.phone.seconds == [seconds]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<i", TRACKER_MAGIC) + b"\xff\xff\xff\x7f{}",
        struct.pack("<ii", TRACKER_MAGIC, 2) + b"{]",
        struct.pack("<ii", TRACKER_MAGIC, 60_000) + b"[" * 60_000,
        struct.pack("<ii", TRACKER_MAGIC, 2) + b"\xff\xff",
        struct.pack("<ii", RPC_MAGIC, 1) + b" ",
        struct.pack("<ii", RPC_MAGIC, -1),
        struct.pack("<i", RPC_MAGIC)[:3],
    ],
)
async def test_garbage_loses_its_connection_and_no_other_theirs(content: bytes) -> None:
    async with running() as lab:
        busy = await lab.session(await (await lab.request()))
        client = await lab.open()
        client.writer.write(content)
        client.writer.write_eof()
        with suppress(ConnectionError):
            await client.reader.read()
        busy.writer.write(b"still")
        assert await busy.reader.readexactly(5) == b"still"


async def test_what_servers_ask_tvms_tracker_is_refused() -> None:
    async with running() as lab:
        client = await lab.tracker()
        assert await client.ask(3, "pixel", [1, "pixel:1"], None) == TrackerCode.FAIL
        assert await client.ask({"no": "list"}) == TrackerCode.FAIL


async def test_the_end_of_the_tracker_ends_the_session_and_those_who_wait() -> None:
    async with running() as lab:
        busy = await lab.session(await (await lab.request()))
        waiting = await lab.tracker()
        waiting.say(json.dumps([TrackerCode.REQUEST, "pixel", "", 1]))
        await lab.until(lambda pending: pending == 1)
        await lab.end()
        assert await busy.is_closed()
        assert await waiting.is_closed()
