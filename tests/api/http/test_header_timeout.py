"""Heads of requests that are too long, or do not come: a connection of its own to the server's protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from farm.api.http.server import GuardedProtocol

pytestmark = pytest.mark.anyio

#: More than any head has, and what is read of a socket in one go.
MOST_BYTES = 2 * 1024 * 1024
GET = b"GET / HTTP/1.1\r\nHost: farm\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: farm\r\nTransfer-Encoding: chunked\r\n\r\n"


class Impatient(GuardedProtocol):
    head_s = 0.3


async def length_of_body(_scope: Scope, receive: Receive, send: Send) -> None:
    """Answers how much was sent."""
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length, more = length + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"7")]})
    await send({"type": "http.response.body", "body": f"{length:7}".encode()})


async def refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answers at once, whatever is to come."""
    await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


@asynccontextmanager
async def connected(
    kind: type[GuardedProtocol] = GuardedProtocol, app: ASGIApp = length_of_body
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    config = Config(app, ws="none", log_config=None, access_log=False, timeout_keep_alive=60)
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        async with asyncio.timeout(120):
            yield reader, writer
    finally:
        writer.close()
        server.close()


async def send_until_refused(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, piece: bytes
) -> bytes:
    """Send pieces for as long as they are taken; what was answered by then."""
    sent = 0
    answered = asyncio.create_task(reader.read())
    while not answered.done():
        assert sent < MOST_BYTES, "it takes everything"
        try:
            writer.write(piece)
            await writer.drain()
        except ConnectionError:
            break
        sent += len(piece)
        await asyncio.sleep(0)
    try:
        return await answered
    except ConnectionError:
        return b""


async def ok(reader: asyncio.StreamReader) -> int:
    """How much was sent, by a good answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    return int(await reader.readexactly(7))


@pytest.mark.parametrize(
    ("begun", "piece"),
    [
        (b"GET /", b"a" * 1024),
        (GET + b"X: ", b"a" * 1024),
        (GET, b"X: a\r\n" * 100),
        (CHUNKED + b"1;", b"a" * 1024),
        (CHUNKED + b"1\r\na\r\n0\r\n", b"X: a\r\n" * 100),
    ],
    ids=["address", "one line", "many lines", "extension of a chunk", "trailers"],
)
async def test_what_stands_before_or_behind_a_body_is_not_kept_without_end(
    begun: bytes, piece: bytes
) -> None:
    async with connected() as (reader, writer):
        writer.write(begun)
        answer = await send_until_refused(reader, writer, piece)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


async def test_a_head_of_many_reads_and_a_body_larger_than_any_head_are_taken() -> None:
    async with connected() as (reader, writer):
        for _ in range(2):
            writer.write(b"POST / HTTP/1.1\r\nHost: farm\r\n")
            for _ in range(10):
                writer.write(b"X: " + b"a" * 1000 + b"\r\n")
                await writer.drain()
            writer.write(b"Content-Length: 1000000\r\n\r\n" + bytes(1_000_000))
            assert await ok(reader) == 1_000_000
            writer.write(CHUNKED + b"1;why\r\na\r\n" * 20_000 + b"0\r\n\r\n")
            assert await ok(reader) == 20_000


@pytest.mark.parametrize("begun", [b"", b"GET / HT", GET + b"X: a"])
async def test_a_connection_on_which_a_head_does_not_come_to_its_end_is_closed(begun: bytes) -> None:
    async with connected(Impatient) as (reader, writer):
        writer.write(begun)
        assert await reader.read() == b""


async def test_the_second_head_of_a_connection_has_to_come_as_well() -> None:
    async with connected(Impatient) as (reader, writer):
        writer.write(GET + b"\r\n")
        assert await ok(reader) == 0
        writer.write(GET)
        assert await reader.read() == b""


@pytest.mark.parametrize("begun", [CHUNKED + b"1\r\na", CHUNKED + b"1\r\na\r\n", CHUNKED])
async def test_a_body_may_take_its_time_and_an_answer_too(begun: bytes) -> None:
    async with connected(Impatient) as (reader, writer):
        writer.write(begun)
        # Longer than the server waits for a head: its timers are the event loop's, in real time.
        await asyncio.sleep(3 * Impatient.head_s)
        rest = {CHUNKED + b"1\r\na": b"\r\n0\r\n\r\n", CHUNKED: b"1\r\na\r\n0\r\n\r\n"}
        writer.write(rest.get(begun, b"0\r\n\r\n"))
        assert await ok(reader) == 1
        # Nothing of a further request has come: the server's own patience for that is longer.
        await asyncio.sleep(3 * Impatient.head_s)
        writer.write(GET + b"\r\n")
        assert await ok(reader) == 0


async def test_the_rest_of_a_body_that_was_refused_is_not_waited_for() -> None:
    async with connected(Impatient, refuse) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: farm\r\nContent-Length: 10\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401 ")
        writer.write(b"a")
        assert await reader.read() == b""


async def test_requests_that_are_sent_before_the_answer_all_get_one_and_hardly_any_is_read_ahead() -> None:
    async with connected() as (reader, writer):
        writer.write((GET + b"\r\n") * 500)
        assert [await ok(reader) for _ in range(500)] == [0] * 500


async def test_what_asks_for_another_protocol_is_answered_in_this_one_body_and_all() -> None:
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    async with connected() as (reader, writer):
        inside = GET + b"\r\n"
        writer.write(
            b"POST / HTTP/1.1\r\nHost: farm\r\n" + upgrade + b"Content-Length: %d\r\n\r\n" % len(inside)
        )
        await writer.drain()
        writer.write(inside)
        assert await ok(reader) == len(inside)
        writer.write(GET + b"\r\n")
        assert await ok(reader) == 0
