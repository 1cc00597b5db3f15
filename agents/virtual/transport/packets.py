"""Packets of adb's transport protocol (AOSP: docs/dev/protocol.md)."""

import asyncio
import struct
from dataclasses import dataclass
from enum import IntEnum

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
