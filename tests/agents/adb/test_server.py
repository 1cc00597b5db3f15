"""The life of the adb server we own."""

import asyncio
import errno
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from agents.adb.client import AdbClient
from agents.adb.server import (
    AdbServer,
    bundled_adb,
    end_own_server,
    find_own_server,
    own_address,
    select_server,
)
from agents.adb.smartsocket import MAX_PATH_BYTES, tcp_address
from agents.host.config import AgentConfig
from agents.host.process import start_ticks
from farm.core.errors import AdbServerDown, InvalidInput
from tests.support.agents.fake_farm import comes_true
from tests.support.faults.other_user import needs_root, other_user
from tests.support.faults.stream_server import stream_server

pytestmark = pytest.mark.anyio


async def test_a_server_answers_once_started_and_is_gone_once_stopped(tmp_path: Path) -> None:
    server = AdbServer(tmp_path, usb=False)
    assert not server.alive()
    async with server:
        pid = server.pid
        assert pid is not None
        assert find_own_server(tmp_path) == pid
        assert await AdbClient(server.address).version() > 0

    assert start_ticks(pid) is None
    assert not server.alive()
    assert find_own_server(tmp_path) is None


@pytest.mark.fault(16)
async def test_a_server_that_died_starts_again_on_its_socket(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await server.start()

        assert server.pid != first
        assert await AdbClient(server.address).version() > 0


async def test_the_server_of_a_killed_agent_is_replaced(tmp_path: Path) -> None:
    orphan = AdbServer(tmp_path, usb=False)
    await orphan.start()
    orphan_pid = orphan.pid
    assert orphan_pid is not None

    async with AdbServer(tmp_path, usb=False) as server:
        assert start_ticks(orphan_pid) is None
        assert find_own_server(tmp_path) == server.pid
        assert await AdbClient(server.address).version() > 0

    await orphan.stop()


async def test_the_server_of_a_folder_that_was_renamed_since_is_replaced(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    orphan = AdbServer(before, usb=False)
    await orphan.start()
    before.rename(after)
    async with AdbServer(after, usb=False) as server:
        assert not orphan.alive()
        assert find_own_server(after) == server.pid
    await orphan.stop()


async def test_a_server_with_the_same_path_in_another_folder_is_left_alone(tmp_path: Path) -> None:
    """As one in a container is, whose path is the same and whose folder is not."""
    command = [bundled_adb(), "-L", own_address(tmp_path / "adb"), "server", "nodaemon"]
    stranger = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        async with AdbServer(tmp_path / "adb", usb=False) as server:
            assert find_own_server(tmp_path / "adb") == server.pid
            end_own_server(tmp_path / "adb")
            await comes_true(lambda: not server.alive(), "asyncio has learnt of its end")
            assert start_ticks(stranger.pid) is not None
    finally:
        stranger.kill()
        await stranger.wait()


async def test_a_file_in_the_place_of_the_socket_does_not_keep_a_server_from_starting(tmp_path: Path) -> None:
    (tmp_path / "socket").write_text("not a socket")
    async with AdbServer(tmp_path, usb=False) as server:
        assert await AdbClient(server.address).version() > 0


async def test_two_folders_have_two_servers(tmp_path: Path) -> None:
    async with AdbServer(tmp_path / "a", usb=False) as one, AdbServer(tmp_path / "b", usb=False) as two:
        assert one.address != two.address
        end_own_server(tmp_path / "a")
        assert await AdbClient(two.address).version() > 0


async def test_the_folder_of_the_socket_is_closed_to_others_and_no_port_is_open(tmp_path: Path) -> None:
    (tmp_path / "adb").mkdir(mode=0o755)
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        assert stat.S_IMODE((tmp_path / "adb").stat().st_mode) == 0o700
        assert (tmp_path / "adb" / "socket").is_socket()
        assert server.pid is not None
        assert not listening_sockets(server.pid)


def listening_sockets(pid: int) -> set[str]:
    """The TCP sockets on which a process listens: proc_pid_net(5)."""
    tables = (Path("/proc/net", name).read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    listening = {f"socket:[{row.split()[9]}]" for table in tables for row in table if row.split()[3] == "0A"}
    return listening & {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}


@needs_root
async def test_another_user_of_the_machine_cannot_use_the_server(short_path: Path) -> None:
    path = open_folder(short_path) / "adb" / "socket"
    async with AdbServer(path.parent, usb=False) as server:
        with other_user():
            assert connected(path) == errno.EACCES
        assert connected(path) == 0
        # Whatever the mode of the socket; and each start closes the folder.
        path.parent.chmod(0o711)
        path.chmod(0o777)
        with other_user():
            assert connected(path) == 0
        await server.start()
        with other_user():
            assert connected(path) == errno.EACCES


def open_folder(folder: Path) -> Path:
    """Let others into a folder, so that the folder of the socket is what protects it."""
    folder.chmod(0o755)
    return folder


def connected(path: Path) -> int:
    """Connect to a socket; returns the number of the error, 0 without one."""
    with socket.socket(socket.AF_UNIX) as connecting:
        return connecting.connect_ex(str(path))


async def test_more_commands_at_once_than_the_server_queues_are_all_answered(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        adb = AdbClient(server.address)
        for _ in range(5):
            assert len(set(await asyncio.gather(*(adb.version() for _ in range(20))))) == 1


async def test_a_queue_that_stays_full_ends_at_the_deadline(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        adb = AdbClient(server.address)
        asked = (adb.version(deadline_s=0.5) for _ in range(20))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(answer) for answer in answers} == {AdbServerDown}


def test_a_path_that_no_socket_can_have_is_refused_with_what_to_do(tmp_path: Path) -> None:
    room = MAX_PATH_BYTES - len(str(tmp_path / "x" / "adb" / "socket")) + 1
    longest, longer = (AgentConfig(data_dir=tmp_path / ("x" * count)) for count in (room, room + 1))
    select_server(longest)
    with pytest.raises(InvalidInput, match="has 108 bytes, at most 107 are possible") as caught:
        select_server(longer)
    assert "FARM_AGENT_DATA_DIR" in caught.value.hint
    # The server that it shares listens elsewhere.
    select_server(longer.model_copy(update={"adb_server": "127.0.0.1:5037"}))


@pytest.mark.fault(16)
async def test_another_adb_cannot_kill_the_server(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        killer = [str(bundled_adb()), "-L", server.address, "kill-server"]
        await asyncio.to_thread(subprocess.run, killer, capture_output=True, check=False, timeout=120)

        assert await AdbClient(server.address).version() > 0


async def test_a_key_without_usb_is_made_in_the_servers_folder(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        environment = _environment(server.pid)

    assert f"HOME={tmp_path / 'home'}".encode() in environment
    assert b"ADB_USB=0" in environment


def _environment(pid: int | None) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


async def test_asking_where_no_server_is_starts_none(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False) as server:
        adb = AdbClient(server.address)
    for ask in (adb.version(), adb.connect("127.0.0.1:1")):
        with pytest.raises(AdbServerDown):
            await ask


async def test_something_else_on_the_port_is_no_adb_server() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with stream_server(answer) as port:
        with pytest.raises(AdbServerDown):
            await AdbClient(tcp_address(port)).version()
