"""adb for a person who holds a phone: what it may do, and on which server."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agents.adb.client import AdbClient
from agents.adb.passthrough import check_server, check_user, environment_without_adb
from agents.adb.server import AdbServer, bundled_adb
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.devices.adb_allowlist import forbidden_reason
from farm.core.errors import AdbServerDown, HostError
from tests.support.faults.other_user import needs_root, other_user
from tests.support.faults.stream_server import read_adb_request, stream_server


@pytest.mark.parametrize(
    "words",
    ["shell ls -l", "push a b", "pull /sdcard/x", "logcat -d", "reboot", "forward tcp:1 tcp:2", "root"],
)
def test_what_concerns_the_own_phone_alone_may_be_done(words: str) -> None:
    assert forbidden_reason(words.split()) is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("kill-server", "serves other phones too"),
        ("disconnect", "serves other phones too"),
        ("reconnect offline", "serves other phones too"),
        ("tcpip 5555", "from the farm"),
        ("-s another shell", "chosen already"),
        ("-P 5037 devices", "chosen already"),
        ("", "nothing is said"),
    ],
)
def test_what_would_disturb_others_is_refused_with_the_reason(words: str, why: str) -> None:
    assert why in str(forbidden_reason(words.split()))


def test_no_setting_points_adb_elsewhere() -> None:
    outer = {"ANDROID_SERIAL": "x", "ADB_VENDOR_KEYS": "y", "ANDROID_ADB_SERVER_PORT": "1", "PATH": "/bin"}
    assert environment_without_adb(outer) == {"PATH": "/bin"}


def test_where_no_server_is_none_is_started(tmp_path: Path, free_tcp_port: int) -> None:
    for address in (f"tcp:127.0.0.1:{free_tcp_port}", f"localfilesystem:{tmp_path}/socket"):
        done = passed_through(address)
        assert done.returncode == 5
        assert done.stderr.startswith(f"error: the adb server at {address} does not answer")
        with pytest.raises(AdbServerDown):
            check_server(bundled_adb(), address)


@pytest.mark.anyio
async def test_the_agents_user_runs_adb_on_its_server(server: AdbServer, phone: VirtualDeviceHandle) -> None:
    await AdbClient(server.address).connect(phone.address)
    done = await asyncio.to_thread(passed_through, server.address, phone.address)
    assert (done.returncode, done.stderr) == (0, "")


@needs_root
@pytest.mark.parametrize("is_entered", [False, True], ids=["folder closed", "socket closed"])
def test_another_user_is_told_whose_server_it_is_and_how_to_use_it(
    short_path: Path, is_entered: bool
) -> None:
    """The folder is the agent's alone; its socket is, too, where someone opened the folder."""
    closed = short_path / "agent"
    address = f"localfilesystem:{closed}/socket"
    with socket.socket(socket.AF_UNIX) as listener:
        short_path.chmod(0o711)
        closed.mkdir(mode=0o711 if is_entered else 0o700)
        listener.bind(str(closed / "socket"))
        with pytest.raises(HostError) as caught, other_user():
            check_user(address, ["adb", "-L", address, "-s", "a", "shell", "ls *"])
    assert caught.value.message == "the agent's adb server is for the agent's user, root, alone"
    assert caught.value.hint == f"run adb as that user: sudo -u root adb -L {address} -s a shell 'ls *'"


def test_a_server_on_a_port_and_one_that_is_not_there_are_for_the_next_check(tmp_path: Path) -> None:
    check_user("tcp:127.0.0.1:5037", [])
    check_user(f"localfilesystem:{tmp_path}/none/socket", [])


@pytest.mark.anyio
async def test_a_server_of_another_version_is_left_alone() -> None:
    async with server_of_version(b"0020") as port:
        with pytest.raises(AdbServerDown, match=r"has version 32, .* would replace it"):
            await asyncio.to_thread(check_server, bundled_adb(), f"tcp:127.0.0.1:{port}")


def passed_through(address: str, serial: str = "serial") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "agents.adb.passthrough", address, serial, "shell", "true"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@asynccontextmanager
async def server_of_version(version: bytes) -> AsyncIterator[int]:
    """Answers `host:version`, and nothing else."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_adb_request(reader)
        writer.write(b"OKAY0004" + version)
        await writer.drain()

    async with stream_server(answer) as port:
        yield port
