"""The life of the adb server we own."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from agents.adb.client import AdbClient
from agents.adb.server import AdbServer, bundled_adb, find_record
from agents.host.process import command_line, start_ticks
from farm.core.errors import AdbServerDown
from tests.support.faults.stream_server import stream_server

pytestmark = pytest.mark.anyio


async def test_a_server_answers_once_started_and_is_gone_once_stopped(tmp_path: Path) -> None:
    server = AdbServer(tmp_path, usb=False)
    assert not server.alive()
    async with server:
        pid = server.pid
        assert await AdbClient(server.port).version() > 0

    assert pid is not None
    assert start_ticks(pid) is None
    assert not server.alive()
    assert find_record(tmp_path) is None


@pytest.mark.fault(16)
async def test_a_server_that_died_starts_again_on_its_port(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        port, first = server.port, server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await server.start()

        assert server.port == port
        assert server.pid != first
        assert await AdbClient(port).version() > 0


async def test_the_server_of_a_killed_agent_is_replaced(tmp_path: Path) -> None:
    orphan = AdbServer(tmp_path, usb=False)
    await orphan.start()
    orphan_pid, port = orphan.pid, orphan.port
    assert orphan_pid is not None

    async with AdbServer(tmp_path, usb=False) as server:
        assert start_ticks(orphan_pid) is None
        assert server.port == port
        assert await AdbClient(port).version() > 0

    await orphan.stop()


async def test_a_stranger_with_the_recorded_pid_is_left_alone(tmp_path: Path) -> None:
    stranger = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        (tmp_path / "adb-server.json").write_text(f'{{"pid": {stranger.pid}, "port": 5999}}')
        async with AdbServer(tmp_path, usb=False):
            assert command_line(stranger.pid) == ["sleep", "60"]
    finally:
        stranger.kill()
        await stranger.wait()


async def test_a_record_of_nonsense_does_not_keep_a_server_from_starting(tmp_path: Path) -> None:
    (tmp_path / "adb-server.json").write_text("{half")
    async with AdbServer(tmp_path, usb=False) as server:
        assert server.alive()


@pytest.mark.fault(29)
async def test_a_full_disk_does_not_keep_a_server_from_starting(tmp_path: Path) -> None:
    (tmp_path / "adb-server.new").symlink_to("/dev/full")
    async with AdbServer(tmp_path, usb=False) as server:
        assert await AdbClient(server.port).version() > 0


async def test_two_folders_have_two_servers(tmp_path: Path) -> None:
    async with AdbServer(tmp_path / "a", usb=False) as one, AdbServer(tmp_path / "b", usb=False) as two:
        assert one.port != two.port


@pytest.mark.fault(16)
async def test_another_adb_cannot_kill_the_server(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        killer = [str(bundled_adb()), "-P", str(server.port), "kill-server"]
        await asyncio.to_thread(subprocess.run, killer, capture_output=True, check=False, timeout=20)

        assert await AdbClient(server.port).version() > 0


async def test_a_key_without_usb_is_made_in_the_servers_folder(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        environment = _environment(server.pid)

    assert f"HOME={tmp_path / 'home'}".encode() in environment
    assert b"ADB_USB=0" in environment


def _environment(pid: int | None) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


async def test_asking_where_no_server_is_starts_none(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        port = server.port
    for ask in (AdbClient(port).version(), AdbClient(port).connect("127.0.0.1:1")):
        with pytest.raises(AdbServerDown):
            await ask


async def test_something_else_on_the_port_is_no_adb_server() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with stream_server(answer) as port:
        with pytest.raises(AdbServerDown):
            await AdbClient(port).version()
