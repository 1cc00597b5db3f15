"""A connection to an adb server with its smart-socket protocol (AOSP: docs/dev/services.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LOOPBACK = "127.0.0.1"
READ_BUFFER_BYTES = 1024 * 1024
#: The server reads a request's length from four hexadecimal digits.
REQUEST_LIMIT_BYTES = 0xFFFF


class AdbRequestFailed(Exception):
    """The server, or the device behind it, answered FAIL; the text is its reason."""


class AdbProtocolError(Exception):
    """The answer violates the protocol."""


class SmartSocket:
    """A connection to the server.

    Raises OSError, EOFError, AdbRequestFailed and AdbProtocolError; callers translate them.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def request(self, service: str) -> None:
        """Request a service and wait for OKAY."""
        payload = service.encode()
        if len(payload) > REQUEST_LIMIT_BYTES:
            raise AdbRequestFailed(
                f"{len(payload)} bytes are too long for one request, at most {REQUEST_LIMIT_BYTES}"
            )
        self.write(b"%04x" % len(payload) + payload)
        status = await self.read_exactly(4)
        if status == b"FAIL":
            raise AdbRequestFailed(await self.read_text())
        if status != b"OKAY":
            raise AdbProtocolError(f"{status!r} where OKAY or FAIL belongs")

    async def read_block(self) -> bytes:
        """Return a block with a length prefix of four hexadecimal digits."""
        digits = await self.read_exactly(4)
        try:
            return await self.read_exactly(int(digits, 16))
        except ValueError as error:
            raise AdbProtocolError(f"{digits!r} where a length belongs") from error

    async def read_text(self) -> str:
        """Return a block as text."""
        return (await self.read_block()).decode(errors="replace")

    async def read_exactly(self, count: int) -> bytes:
        """Return `count` bytes; raise EOFError (asyncio.IncompleteReadError) at the end."""
        return await self._reader.readexactly(count)

    def write(self, data: bytes) -> None:
        """Queue bytes without waiting; they are sent while this side reads."""
        self._writer.write(data)

    async def drain(self) -> None:
        """Wait until the queue is short."""
        await self._writer.drain()

    def abort(self) -> None:
        """Close at once, whatever is queued."""
        self._writer.transport.abort()


@asynccontextmanager
async def smart_socket(port: int, host: str = LOOPBACK) -> AsyncIterator[SmartSocket]:
    """Connect to the server; closed on exit, by cancellation too."""
    reader, writer = await asyncio.open_connection(host, port, limit=READ_BUFFER_BYTES)
    socket = SmartSocket(reader, writer)
    try:
        yield socket
    finally:
        socket.abort()
