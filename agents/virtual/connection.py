"""The adb transport of a virtual phone (AOSP: docs/dev/protocol.md): packets, connection, authorization."""

import asyncio
import base64
import binascii
import secrets
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from itertools import count
from pathlib import Path

FILE = "adb_keys"
#: The host signs this many random bytes, used as a SHA-1 digest.
TOKEN_BYTES = 20
#: Words of the modulus, its inverse, the modulus, R squared, the exponent.
_PUBLIC_KEY = struct.Struct("<II256s256sI")
#: PKCS #1: the prefix of a signed SHA-1 digest (RFC 8017, 9.2).
_SHA1_PREFIX = bytes.fromhex("3021300906052b0e03021a05000414")
_SIGNATURE_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """An RSA key of 2048 bits."""

    modulus: int
    exponent: int

    def signed(self, token: bytes, signature: bytes) -> bool:
        """Return whether the signature of a token was made with this key's private half."""
        decrypted = pow(int.from_bytes(signature, "big"), self.exponent, self.modulus)
        digest = _SHA1_PREFIX + token
        padding = b"\xff" * (_SIGNATURE_BYTES - len(digest) - 3)
        return decrypted.to_bytes(_SIGNATURE_BYTES, "big") == b"\0\1" + padding + b"\0" + digest


class AuthorizedKeys:
    """The keys that a phone accepts now, in `adb_keys` as on a device; read again for each connection.

    Without the file the phone asks for none, as an emulator. With it, one public key a line as adb writes
    them (`adbkey.pub`), a host must prove that it holds the private key of one of them. The formats are
    AOSP's: system/core/libcrypto_utils/android_pubkey.cpp, packages/modules/adb/protocol.txt.
    """

    def __init__(self, state: Path, *, forgotten: bool = False) -> None:
        """Read nothing yet; `forgotten` has the phone know no key and ask its owner again."""
        self._path = state / FILE
        self._forgotten = forgotten

    def asks(self) -> bool:
        """Return whether a host has to prove its identity."""
        return self._forgotten or self._path.exists()

    def accept(self, token: bytes, signature: bytes) -> bool:
        """Return whether one of the keys signed the token."""
        if self._forgotten:
            return False
        return any(key.signed(token, signature) for key in public_keys(self._path.read_text()))


def public_keys(text: str) -> Iterator[PublicKey]:
    """Parse the keys of a file as adb writes them; invalid lines are skipped."""
    for line in text.splitlines():
        try:
            fields = _PUBLIC_KEY.unpack(base64.b64decode(line.partition(" ")[0], validate=True))
        except (binascii.Error, struct.error):
            continue
        yield PublicKey(modulus=int.from_bytes(fields[2], "little"), exponent=fields[4])


HEADER = struct.Struct("<6I")
VERSION = 0x01000001
#: From this version on the checksum of a packet is ignored.
VERSION_WITHOUT_SUMS = 0x01000001
MAX_DATA_BYTES = 1024 * 1024


class PacketCommand(IntEnum):
    """The command of a packet: four letters, little-endian."""

    CNXN = int.from_bytes(b"CNXN", "little")
    AUTH = int.from_bytes(b"AUTH", "little")
    OPEN = int.from_bytes(b"OPEN", "little")
    OKAY = int.from_bytes(b"OKAY", "little")
    WRTE = int.from_bytes(b"WRTE", "little")
    CLSE = int.from_bytes(b"CLSE", "little")


class AuthType(IntEnum):
    """The first argument of an AUTH packet. A host without further keys sends a public one."""

    TOKEN = 1
    SIGNATURE = 2
    PUBLIC_KEY = 3


class InvalidPacket(Exception):
    """The received data is not a packet."""


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet; `command` is a number, as a peer may send an unknown one."""

    command: int
    arg0: int
    arg1: int
    payload: bytes = b""

    def header(self, *, summed: bool) -> bytes:
        """Return the 24 bytes before the payload."""
        total = sum(self.payload) & 0xFFFFFFFF if summed else 0
        return HEADER.pack(
            self.command, self.arg0, self.arg1, len(self.payload), total, self.command ^ 0xFFFFFFFF
        )


async def read_packet(reader: asyncio.StreamReader) -> Packet:
    """Return the next packet; raise EOFError at the end, InvalidPacket for an invalid one."""
    fields = HEADER.unpack(await reader.readexactly(HEADER.size))
    command, arg0, arg1, length, _, magic = fields
    if magic != command ^ 0xFFFFFFFF or length > MAX_DATA_BYTES:
        raise InvalidPacket(f"header {fields}")
    return Packet(command, arg0, arg1, await reader.readexactly(length))


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


@dataclass(eq=False)
class AdbConnection:
    """Serves one adb server until it disconnects, then cancels its running services."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _: KW_ONLY
    #: The payload of our greeting.
    banner: bytes
    find_service: FindService
    #: While it is clear, nothing is read or sent: the device hangs.
    awake: asyncio.Event
    keys: AuthorizedKeys

    def __post_init__(self) -> None:
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
                    packet = await read_packet(self.reader)
                    await self.awake.wait()
                    match packet.command:
                        case PacketCommand.CNXN:
                            self._hello = packet
                            await self._authorize(packet, is_known=not self.keys.asks())
                        case PacketCommand.AUTH if self._hello and packet.arg0 == AuthType.SIGNATURE:
                            is_known = self.keys.accept(self._token, packet.payload)
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
        finally:
            tasks = list(self._task_by_id.values())
            self.abort()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def abort(self) -> None:
        """Close at once, like a pulled cable; `serve` then ends."""
        self.writer.transport.abort()

    async def send(self, packet: Packet) -> None:
        """Send one whole packet; waits while the host does not read, or the phone hangs."""
        if self.writer.transport.is_closing():
            # A phone that hangs would block here, for data that no one can receive.
            raise ConnectionResetError("the connection is cut")
        await self.awake.wait()
        self.writer.write(packet.header(summed=self._summed))
        self.writer.write(packet.payload)
        await self.writer.drain()

    async def _authorize(self, hello: Packet, *, is_known: bool) -> None:
        """Greet a known host; have another one try its next key."""
        if not is_known:
            self._token = secrets.token_bytes(TOKEN_BYTES)
            await self.send(Packet(PacketCommand.AUTH, AuthType.TOKEN, 0, self._token))
            return
        self._is_open = True
        self.max_data_bytes = min(MAX_DATA_BYTES, hello.arg1)
        # The checksum of a greeting is always verified: later ones depend on its version.
        await self.send(Packet(PacketCommand.CNXN, VERSION, MAX_DATA_BYTES, self.banner))
        self._summed = hello.arg0 < VERSION_WITHOUT_SUMS

    async def _open(self, remote_id: int, payload: bytes) -> None:
        service = self.find_service(payload.rstrip(b"\0").decode(errors="surrogateescape"))
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

        def forget(_: asyncio.Task[None]) -> None:
            del self._stream_by_id[local_id], self._task_by_id[local_id]

        task.add_done_callback(forget)

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


class ByteStream:
    """Reads a stream by count; nothing is lost between calls."""

    def __init__(self, stream: ServiceStream) -> None:
        self._stream = stream
        self._pending = bytearray()

    async def read_exactly(self, count: int) -> bytes:
        """Return the next `count` bytes; waits for them."""
        while len(self._pending) < count:
            self._pending += await self._stream.read()
        data = bytes(self._pending[:count])
        del self._pending[:count]
        return data
