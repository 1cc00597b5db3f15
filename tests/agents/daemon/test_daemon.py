"""`farm-agent` as a process: exit codes, hints, and an end by signal."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agents.adb.server import find_own_server
from agents.host.config import AgentConfig
from agents.host.data_dir import host_lock
from tests.support.agents.fake_farm import TOKEN, FakeFarm

COMMAND = [sys.executable, "-m", "agents.daemon"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FARM_")}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=60, env=environment, check=False
    )


def test_every_option_has_help() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert all(
        option in done.stdout for option in ("--farm-url", "--data-dir", "--adb-connect", "Exit codes")
    )


def test_a_setting_that_cannot_be_is_the_users_and_ends_with_a_hint() -> None:
    done = run("--farm-url", "farm.lab")
    assert done.returncode == 2
    assert "farm.lab" in done.stderr
    assert "hint: " in done.stderr
    assert done.stdout == ""


def test_a_second_agent_leaves_with_the_hosts_exit_code(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("any")
    with host_lock(tmp_path):
        done = run("--data-dir", str(tmp_path), "--join-token-file", str(tmp_path / "token"))
    assert done.returncode == 5
    assert f"pid {os.getpid()}" in done.stderr
    assert "hint: stop the other agent" in done.stderr


@pytest.mark.anyio
async def test_sigterm_ends_an_agent_in_order(config: AgentConfig, played: FakeFarm, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    options = {"farm-url": config.farm_url, "data-dir": config.data_dir, "join-token-file": token}
    arguments = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    agent = await asyncio.create_subprocess_exec(*COMMAND, "--no-adb-usb", *arguments, stdout=subprocess.PIPE)
    await played.until(lambda: bool(played.exchanges))
    agent.send_signal(signal.SIGTERM)
    out, _ = await agent.communicate()
    assert (agent.returncode, out) == (0, b"")
    assert find_own_server(config.data_dir / "adb") is None
