"""Heads of requests that are too long, or do not come: a connection of its own to the server's protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from farm.api.heads import MAX_HEAD_BYTES, BoundedHeads

pytestmark = pytest.mark.anyio

#: What the server's protocol reads at most in one go, by asyncio's own limit.
ONE_READ = 256 * 1024
GET = b"GET / HTTP/1.1\r\nHost: farm\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: farm\r\nTransfer-Encoding: chunked\r\n\r\n"


class Impatient(BoundedHeads):
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


@asynccontextmanager
async def connected(
    kind: type[BoundedHeads] = BoundedHeads,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    config = Config(length_of_body, log_config=None, access_log=False, timeout_keep_alive=60)
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        async with asyncio.timeout(30):
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
        assert sent < MAX_HEAD_BYTES + 8 * ONE_READ, "it takes everything"
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
            writer.write(b"POST / HTTP/1.1\r\n")
            for _ in range(30):
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


async def test_a_body_may_take_its_time_and_an_answer_too() -> None:
    async with connected(Impatient) as (reader, writer):
        writer.write(CHUNKED + b"1\r\na")
        await asyncio.sleep(3 * Impatient.head_s)
        writer.write(b"\r\n0\r\n\r\n")
        assert await ok(reader) == 1
        # Nothing of a further request has come: the server's own patience for that is longer.
        await asyncio.sleep(3 * Impatient.head_s)
        writer.write(GET + b"\r\n")
        assert await ok(reader) == 0
