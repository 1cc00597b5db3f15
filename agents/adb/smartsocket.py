"""A connection to an adb server with its smart-socket protocol (AOSP: docs/dev/services.md)."""

import asyncio
import socket as sockets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from farm.core.base.address import host_and_port

LOOPBACK = "127.0.0.1"
_UNIX, _TCP = "localfilesystem:", "tcp:"
#: The greatest length of a Unix socket's path: sun_path of unix(7) without its final zero byte.
MAX_PATH_BYTES = 107
#: adb's server queues 4 connections, and accepts them within milliseconds.
QUEUE_DEADLINE_S = 5.0
QUEUE_RETRY_S = 0.005
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


def tcp_address(port: int, host: str = LOOPBACK) -> str:
    """Return the address of a server on a TCP port, in the notation of `adb -L`."""
    return f"{_TCP}[{host}]:{port}" if ":" in host else f"{_TCP}{host}:{port}"


def unix_address(path: Path) -> str:
    """Return the address of a server on a Unix socket, in the notation of `adb -L`."""
    return f"{_UNIX}{path}"


def find_socket_path(address: str) -> Path | None:
    """Return the path of the Unix socket that an address names; None for a TCP port."""
    return Path(address.removeprefix(_UNIX)) if address.startswith(_UNIX) else None


@asynccontextmanager
async def smart_socket(address: str) -> AsyncIterator[SmartSocket]:
    """Connect to the server at `address`; closed on exit, by cancellation too.

    Raises:
        OSError: it does not listen there, or (TimeoutError) its queue stays full for QUEUE_DEADLINE_S.
        ValueError: the address is malformed.
    """
    if (path := find_socket_path(address)) is not None:
        reader, writer = await _open_unix_connection(path)
    else:
        host, port = host_and_port(address.removeprefix(_TCP))
        reader, writer = await asyncio.open_connection(host, port, limit=READ_BUFFER_BYTES)
    socket = SmartSocket(reader, writer)
    try:
        yield socket
    finally:
        socket.abort()


async def _open_unix_connection(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    connecting = sockets.socket(sockets.AF_UNIX)
    try:
        connecting.setblocking(False)
        async with asyncio.timeout(QUEUE_DEADLINE_S):
            # With a full queue, connect(2) on a Unix socket fails with EAGAIN, and nothing is under way:
            # asyncio's own connect would wait for the end of it, and take the socket for connected.
            while True:
                with suppress(BlockingIOError):
                    connecting.connect(str(path))
                    break
                await asyncio.sleep(QUEUE_RETRY_S)
        return await asyncio.open_unix_connection(sock=connecting, limit=READ_BUFFER_BYTES)
    except BaseException:
        connecting.close()
        raise
