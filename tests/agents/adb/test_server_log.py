"""The log of the agent's adb server stays small, while the server keeps it open."""

import asyncio
from pathlib import Path

import pytest

from agents.adb.client import AdbClient
from agents.adb.server import AdbServer, bundled_adb
from tests.support.agents.adb_supervisor_fixture import watching
from tests.support.agents.fake_farm import comes_true

pytestmark = pytest.mark.anyio

LIMIT_BYTES = 20_000


@pytest.fixture
def talkative_adb(tmp_path: Path) -> Path:
    """The real adb, which logs all that it does."""
    script = tmp_path / "adb-that-traces"
    script.write_text(f'#!/bin/sh\nADB_TRACE=all exec "{bundled_adb()}" "$@"\n')
    script.chmod(0o755)
    return script


async def test_a_log_that_grows_is_rotated_while_its_server_runs(tmp_path: Path, talkative_adb: Path) -> None:
    log, older = tmp_path / "adb-server.log", tmp_path / "adb-server.log.1"
    async with AdbServer(tmp_path, usb=False, adb=talkative_adb, log_limit_bytes=LIMIT_BYTES) as server:
        pid = server.pid
        async with watching(server, ping_s=0.02), asyncio.timeout(120):
            # Once there is an older part, the log may be as long as it, or empty, for a moment yet.
            while not older.exists() or not 100 <= log.stat().st_size < LIMIT_BYTES:
                await AdbClient(server.address).version()
        assert await AdbClient(server.address).version() > 0
        assert server.pid == pid
    # The server appends: where it went on after the truncation is the new beginning.
    assert b"\0" not in log.read_bytes()
    assert older.stat().st_size > LIMIT_BYTES
    assert b"adb" in older.read_bytes()
    # A further rotation may be under way, in a thread that outlives the supervisor.
    await comes_true(lambda: not log.with_name("adb-server.log.new").exists(), "no copy is left half made")


async def test_the_log_of_the_previous_server_is_kept(tmp_path: Path) -> None:
    (tmp_path / "adb-server.log").write_text("why it ended")
    async with AdbServer(tmp_path, usb=False):
        pass
    assert (tmp_path / "adb-server.log.1").read_text() == "why it ended"


async def test_a_log_that_cannot_be_copied_is_emptied(tmp_path: Path) -> None:
    async with AdbServer(tmp_path, usb=False, log_limit_bytes=10) as server:
        log = tmp_path / "adb-server.log"
        log.write_text("x" * 100)
        (tmp_path / "adb-server.log.new").symlink_to("/dev/full")
        await server.rotate_log()
        # The server may have written of its start since.
        assert "xxx" not in log.read_text()
        assert await AdbClient(server.address).version() > 0
