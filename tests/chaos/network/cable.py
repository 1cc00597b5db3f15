"""A cable between one agent and one phone, to be plugged in and pulled out."""

import asyncio
from contextlib import suppress

_CHUNK_BYTES = 256 * 1024


class Wire:
    """A port that leads to a phone's while it is plugged in; otherwise connecting is refused.

    The port must be held for it: see `held_port`.
    """

    def __init__(self, port: int, phone_port: int) -> None:
        self.port = port
        self._phone_port = phone_port
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None] | None] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def plug_in(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def pull_out(self) -> None:
        """Cut what is connected; nobody is told in words."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for end in list(self._ends):
            end.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        self._ends.add(writer)
        with suppress(OSError, asyncio.CancelledError):
            await self._join(reader, writer)
        writer.transport.abort()
        self._ends.discard(writer)
        self._tasks.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        phone_reader, phone_writer = await asyncio.open_connection("127.0.0.1", self._phone_port)
        self._ends.add(phone_writer)
        try:
            await asyncio.gather(_pump(reader, phone_writer), _pump(phone_reader, writer))
        finally:
            phone_writer.transport.abort()
            self._ends.discard(phone_writer)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    # The other way ends with this one: adb never closes half a connection.
    writer.transport.abort()
