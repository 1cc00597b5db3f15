"""adb for a person who holds a phone: what it may do, and on which server."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agents.adb.passthrough import check_server, environment_without_adb
from agents.adb.server import bundled_adb
from farm.core.devices.adb_allowlist import forbidden_reason
from farm.core.errors import AdbServerDown
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


def test_where_no_server_is_none_is_started(free_tcp_port: int) -> None:
    command = [sys.executable, "-m", "agents.adb.passthrough", str(free_tcp_port), "serial", "shell", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5
    assert done.stderr.startswith(f"error: the adb server at 127.0.0.1:{free_tcp_port} does not answer")
    with pytest.raises(AdbServerDown):
        check_server(bundled_adb(), free_tcp_port)


@pytest.mark.anyio
async def test_a_server_of_another_version_is_left_alone() -> None:
    async with server_of_version(b"0020") as port:
        with pytest.raises(AdbServerDown, match=r"has version 32, .* would replace it"):
            await asyncio.to_thread(check_server, bundled_adb(), port)


@asynccontextmanager
async def server_of_version(version: bytes) -> AsyncIterator[int]:
    """Answers `host:version`, and nothing else."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_adb_request(reader)
        writer.write(b"OKAY0004" + version)
        await writer.drain()

    async with stream_server(answer) as port:
        yield port
