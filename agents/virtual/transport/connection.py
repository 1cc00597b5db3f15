"""One connection from an adb server: the greeting, and concurrent streams with flow control."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

from agents.virtual.transport.authorization import TOKEN_BYTES, AuthorizedKeys
from agents.virtual.transport.packets import (
    MAX_DATA_BYTES,
    VERSION,
    VERSION_WITHOUT_SUMS,
    AuthType,
    InvalidPacket,
    Packet,
    PacketCommand,
    read_packet,
)

Service = Callable[["ServiceStream"], Awaitable[None]]
#: Finds the service for a name such as `shell:ls`; None refuses it.
FindService = Callable[[str], Service | None]


class ServiceStream:
    """One open service. Each side has at most one write in flight: the next waits for its OKAY."""

    def __init__(self, connection: "AdbConnection", local_id: int, remote_id: int) -> None:
        self._connection = connection
        self._ids = local_id, remote_id
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self._acknowledged = asyncio.Event()
        self._acknowledged.set()
        self._writing = asyncio.Lock()

    async def read(self) -> bytes:
        """Return the host's next data, which lets the host write again. May wait for ever."""
        data = await self._arrived.get()
        await self._connection.send(Packet(PacketCommand.OKAY, *self._ids))
        return data

    async def write(self, data: bytes) -> None:
        """Send to the host, chunk by chunk, as the host accepts it."""
        limit = self._connection.max_data_bytes
        async with self._writing:
            for at in range(0, len(data), limit):
                await self._acknowledged.wait()
                self._acknowledged.clear()
                await self._connection.send(Packet(PacketCommand.WRTE, *self._ids, data[at : at + limit]))

    async def flush(self) -> None:
        """Wait until the host has accepted everything, so that a close cannot overtake it."""
        async with self._writing:
            await self._acknowledged.wait()

    def arrive(self, data: bytes) -> None:
        """Accept a write of the host."""
        self._arrived.put_nowait(data)

    def acknowledge(self) -> None:
        """Record that the host accepted the last write."""
        self._acknowledged.set()


class AdbConnection:
    """Serves one adb server until it disconnects, then cancels its running services."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        banner: bytes,
        find_service: FindService,
        awake: asyncio.Event,
        keys: AuthorizedKeys,
    ) -> None:
        """Read nothing yet.

        Args:
            reader: of the accepted connection.
            writer: of the accepted connection; closed by `serve`.
            banner: the payload of our greeting.
            find_service: who serves what.
            awake: while it is clear, nothing is read or sent: the phone hangs.
            keys: one of which the host must hold, where the phone asks for any.
        """
        self._reader = reader
        self._writer = writer
        self._banner = banner
        self._find_service = find_service
        self._awake = awake
        self._keys = keys
        self._hello: Packet | None = None
        self._token = b""
        self._is_open = False
        self._local_ids = count(1)
        self._stream_by_id: dict[int, ServiceStream] = {}
        self._task_by_id: dict[int, asyncio.Task[None]] = {}
        self._summed = True
        self.max_data_bytes = MAX_DATA_BYTES

    async def serve(self) -> None:
        """Serve until the host closes the connection or violates the protocol."""
        try:
            with suppress(OSError, EOFError, InvalidPacket):
                while True:
                    packet = await read_packet(self._reader)
                    await self._awake.wait()
                    await self._take(packet)
        finally:
            await self._end()

    def abort(self) -> None:
        """Close at once, like a pulled cable; `serve` then ends."""
        self._writer.transport.abort()

    async def send(self, packet: Packet) -> None:
        """Send one whole packet; waits while the host does not read, or the phone hangs."""
        if self._writer.transport.is_closing():
            # A phone that hangs would block here, for data that nobody can receive.
            raise ConnectionResetError("the connection is cut")
        await self._awake.wait()
        self._writer.write(packet.header(summed=self._summed))
        self._writer.write(packet.payload)
        await self._writer.drain()

    async def _take(self, packet: Packet) -> None:
        match packet.command:
            case PacketCommand.CNXN:
                self._hello = packet
                await self._authorize(packet, is_known=not self._keys.asks())
            case PacketCommand.AUTH if self._hello and packet.arg0 == AuthType.SIGNATURE:
                is_known = self._keys.accept(self._token, packet.payload)
                await self._authorize(self._hello, is_known=is_known)
            case PacketCommand.OPEN if self._is_open:
                await self._open(packet.arg0, packet.payload)
            case PacketCommand.OKAY if stream := self._stream_by_id.get(packet.arg1):
                stream.acknowledge()
            case PacketCommand.WRTE if stream := self._stream_by_id.get(packet.arg1):
                stream.arrive(packet.payload)
            case PacketCommand.CLSE if task := self._task_by_id.get(packet.arg1):
                task.cancel()
            case _:
                # Late packets of closed streams, and unknown commands.
                pass

    async def _authorize(self, hello: Packet, *, is_known: bool) -> None:
        """Greet a known host; have another one try its next key."""
        if is_known:
            await self._greet(hello)
            return
        self._token = secrets.token_bytes(TOKEN_BYTES)
        await self.send(Packet(PacketCommand.AUTH, AuthType.TOKEN, 0, self._token))

    async def _greet(self, packet: Packet) -> None:
        self._is_open = True
        self.max_data_bytes = min(MAX_DATA_BYTES, packet.arg1)
        # The checksum of a greeting is always verified: later ones depend on its version.
        await self.send(Packet(PacketCommand.CNXN, VERSION, MAX_DATA_BYTES, self._banner))
        self._summed = packet.arg0 < VERSION_WITHOUT_SUMS

    async def _open(self, remote_id: int, payload: bytes) -> None:
        service = self._find_service(payload.rstrip(b"\0").decode(errors="surrogateescape"))
        if service is None:
            await self.send(Packet(PacketCommand.CLSE, 0, remote_id))
            return
        local_id = next(self._local_ids)
        stream = self._stream_by_id[local_id] = ServiceStream(self, local_id, remote_id)
        await self.send(Packet(PacketCommand.OKAY, local_id, remote_id))
        task = asyncio.create_task(
            self._run(service, stream, Packet(PacketCommand.CLSE, local_id, remote_id))
        )
        self._task_by_id[local_id] = task
        task.add_done_callback(lambda _: self._forget(local_id))

    async def _run(self, service: Service, stream: ServiceStream, closing: Packet) -> None:
        try:
            await service(stream)
            await stream.flush()
        except (OSError, EOFError, InvalidPacket):
            # The connection broke, or the host broke the service's protocol: this stream is over.
            pass
        finally:
            with suppress(OSError):
                await self.send(closing)

    def _forget(self, local_id: int) -> None:
        del self._stream_by_id[local_id], self._task_by_id[local_id]

    async def _end(self) -> None:
        tasks = list(self._task_by_id.values())
        self.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
