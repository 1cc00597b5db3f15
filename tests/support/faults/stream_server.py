"""A server on loopback that answers each connection as a test says, and leaves none of them open."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

AnswerStream = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def stream_server(answer: AnswerStream) -> AsyncIterator[int]:
    """Serve on a free port, which is returned.

    A connection is closed when its answer ends, and also when the other side is gone before. On leaving,
    answers that still run are cancelled: the garbage collector would find their connections, in some other
    test.
    """
    answers: set[asyncio.Task[Any] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers.add(asyncio.current_task())
        try:
            # asyncio reports a server's cancelled task as an error.
            with suppress(EOFError, OSError, asyncio.CancelledError):
                await answer(reader, writer)
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            running = [each for each in answers if each is not None and not each.done()]
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def read_adb_request(reader: asyncio.StreamReader) -> bytes:
    """Return the next request to an adb server: four hexadecimal digits of its length, and its text."""
    return await reader.readexactly(int(await reader.readexactly(4), 16))
