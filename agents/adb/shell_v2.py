"""Framing and collection of adb's shell protocol v2 (AOSP: shell_protocol.h)."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from agents.adb.smartsocket import SmartSocket

HEADER = struct.Struct("<BI")
CHUNK_BYTES = 32 * 1024


class PacketId(IntEnum):
    """The kind of a shell packet."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    EXIT = 3
    CLOSE_STDIN = 4
    WINDOW_SIZE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellResult:
    """The exit code and output of a command."""

    #: 128 + n for a death by signal n.
    exit_code: int
    stdout: bytes
    stderr: bytes
    #: Bytes of stdout and stderr together beyond the limit.
    dropped_bytes: int = 0

    @property
    def text(self) -> str:
        """Return the standard output as text."""
        return self.stdout.decode(errors="replace")

    @property
    def message(self) -> str:
        """Return the reason of a failure: the error output, or else the exit code."""
        return self.stderr.decode(errors="replace").strip() or f"exit code {self.exit_code}"


def packet(kind: PacketId, data: bytes = b"") -> bytes:
    """Return one shell packet."""
    return HEADER.pack(kind, len(data)) + data


def stdin_packets(data: bytes) -> bytes:
    """Return the packets of a command's whole input, with the end of it."""
    parts = (data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES))
    return b"".join(packet(PacketId.STDIN, part) for part in parts) + packet(PacketId.CLOSE_STDIN)


class OutputCollector:
    """Collects output up to a limit per stream and counts the rest."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._parts: dict[int, bytearray] = {PacketId.STDOUT: bytearray(), PacketId.STDERR: bytearray()}
        self._dropped_bytes = 0

    def add(self, kind: int, data: bytes) -> None:
        """Add a packet; kinds that carry no output are ignored."""
        if (part := self._parts.get(kind)) is None:
            return
        accepted = data[: max(0, self._limit_bytes - len(part))]
        part += accepted
        self._dropped_bytes += len(data) - len(accepted)

    def result(self, exit_code: int) -> ShellResult:
        """Return the collected output."""
        return ShellResult(
            exit_code=exit_code,
            stdout=bytes(self._parts[PacketId.STDOUT]),
            stderr=bytes(self._parts[PacketId.STDERR]),
            dropped_bytes=self._dropped_bytes,
        )


async def read_packet_header(socket: SmartSocket) -> tuple[int, int]:
    """Return kind and length of the next packet."""
    kind, length = HEADER.unpack(await socket.read_exactly(HEADER.size))
    return kind, length


async def read_result(socket: SmartSocket, collector: OutputCollector, head: tuple[int, int]) -> ShellResult:
    """Return the result of a command, reading from the packet whose header was read."""
    while True:
        kind, length = head
        data = await socket.read_exactly(length)
        if kind == PacketId.EXIT and length == 1:
            return collector.result(data[0])
        collector.add(kind, data)
        head = await read_packet_header(socket)
