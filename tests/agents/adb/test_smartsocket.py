"""The client against servers that break the protocol, each a real socket with a script."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.shell_v2 import PacketId, packet
from agents.adb.smartsocket import tcp_address
from farm.core.errors import (
    AdbServerDown,
    DeviceOffline,
    DeviceProtocol,
    DeviceTimeout,
    DeviceUnfit,
    PushFailed,
)
from tests.support.faults.stream_server import AnswerStream, read_adb_request, stream_server

pytestmark = pytest.mark.anyio
DEADLINE_S = 120.0


@asynccontextmanager
async def scripted_device(
    script: AnswerStream, features: bytes = b"shell_v2,stat_v2"
) -> AsyncIterator[AdbDevice]:
    """A server that answers as adb's does, until a phone's service is opened: then the script takes over."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            name = await read_adb_request(reader)
            if name == b"host:version":
                writer.write(b"OKAY00040029")
            elif name.endswith(b":features"):
                writer.write(b"OKAY%04x" % len(features) + features)
            elif name == b"host:transport:phone":
                writer.write(b"OKAY")
            else:
                await script(reader, writer)
                return

    async with stream_server(answer) as port:
        yield AdbClient(tcp_address(port)).device("phone")


async def test_an_end_without_exit_packet_is_no_success() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"OKAY" + packet(PacketId.STDOUT, b"looks fine\n"))

    async with scripted_device(script) as device:
        with pytest.raises(DeviceOffline):
            await device.shell("true", deadline_s=DEADLINE_S)


async def test_an_end_within_a_packet_is_no_success() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"OKAY" + packet(PacketId.STDOUT, b"looks fine\n")[:-3])

    async with scripted_device(script) as device:
        with pytest.raises(DeviceOffline):
            await device.shell("true", deadline_s=DEADLINE_S)


async def test_packets_of_unknown_kinds_are_passed_over() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"OKAY" + b"\x63" + struct.pack("<I", 2) + b"??" + packet(PacketId.EXIT, b"\x05"))
        await reader.read(1)

    async with scripted_device(script) as device:
        assert (await device.shell("true", deadline_s=DEADLINE_S)).exit_code == 5


async def test_a_refused_service_gives_the_phones_reason() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"FAIL0006closed")

    async with scripted_device(script) as device:
        with pytest.raises(DeviceProtocol, match="closed"):
            await device.shell("true", deadline_s=DEADLINE_S)


@pytest.mark.parametrize("answer", [b"WHAT", b"FAILzzzz", b"OKAY" + b"\0" * 8])
async def test_nonsense_from_the_sync_service_is_a_protocol_error(answer: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.read()

    async with scripted_device(script) as device:
        with pytest.raises(DeviceProtocol):
            await device.read("/file", limit_bytes=10, deadline_s=DEADLINE_S)


async def test_an_absurd_length_is_refused_before_it_is_read() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"OKAY" + b"DATA" + b"\xff\xff\xff\xff")
        await reader.read()

    async with scripted_device(script) as device:
        with pytest.raises(DeviceProtocol):
            await device.read("/file", limit_bytes=10, deadline_s=DEADLINE_S)


async def test_silence_ends_at_the_deadline() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with scripted_device(script) as device:
        with pytest.raises(DeviceTimeout):
            await device.read("/file", limit_bytes=10, deadline_s=0.1)


async def test_a_phone_without_shell_v2_is_unfit() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError("nothing must be opened")

    async with scripted_device(script, features=b"cmd") as device:
        with pytest.raises(DeviceUnfit):
            await device.shell("true", deadline_s=DEADLINE_S)


async def test_a_push_refused_and_cut_off_midway_still_says_why(tmp_path: Path) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"OKAY")
        await reader.readexactly(1000)
        writer.write(b"FAIL" + struct.pack("<I", 9) + b"read-only")
        await writer.drain()
        writer.write_eof()
        await reader.read()

    (tmp_path / "file").write_bytes(bytes(200_000))
    async with scripted_device(script) as device:
        with pytest.raises(PushFailed, match="read-only"):
            await device.push(tmp_path / "file", "/remote", mode=0o644, deadline_s=DEADLINE_S)


async def test_a_connection_lost_within_a_push_is_offline(tmp_path: Path) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"OKAY")
        await reader.readexactly(1000)

    (tmp_path / "file").write_bytes(bytes(50_000_000))
    async with scripted_device(script) as device:
        with pytest.raises(DeviceOffline):
            await device.push(tmp_path / "file", "/remote", mode=0o644, deadline_s=DEADLINE_S)


async def test_no_server_at_all_is_the_hosts_trouble() -> None:
    async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]

    with pytest.raises(AdbServerDown):
        await AdbClient(tcp_address(port)).device("phone").shell("true", deadline_s=DEADLINE_S)
    with pytest.raises(AdbServerDown):
        await anext(AdbClient(tcp_address(port)).track_devices())
