"""Transport packets."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.virtual.connection import MAX_DATA_BYTES, InvalidPacket, Packet, PacketCommand, read_packet

U32 = st.integers(0, 2**32 - 1)


def read(raw: bytes) -> Packet:
    async def from_reader() -> Packet:
        reader = asyncio.StreamReader()
        reader.feed_data(raw)
        reader.feed_eof()
        return await read_packet(reader)

    return asyncio.run(from_reader())


@given(U32, U32, U32, st.binary(max_size=100), st.booleans())
def test_a_packet_reads_back(command: int, arg0: int, arg1: int, payload: bytes, summed: bool) -> None:
    packet = Packet(command, arg0, arg1, payload)

    assert read(packet.header(summed=summed) + payload) == packet


@given(st.binary(max_size=60))
def test_garbage_is_refused_not_misread(raw: bytes) -> None:
    with pytest.raises((InvalidPacket, EOFError)):
        read(b"\x01" + raw)


def test_a_length_over_the_limit_is_refused() -> None:
    header = bytearray(Packet(PacketCommand.WRTE, 1, 2).header(summed=False))
    header[12:16] = (MAX_DATA_BYTES + 1).to_bytes(4, "little")

    with pytest.raises(InvalidPacket):
        read(bytes(header))
