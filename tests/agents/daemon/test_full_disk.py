"""An agent that is started on a full disk waits in its process, and starts when there is space."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from agents.daemon import run_agent
from agents.host.config import AgentConfig
from agents.host.data_dir import host_lock
from agents.link.enrollment import CREDENTIAL_FILE
from farm.clock import SystemClock
from tests.support.agents.fake_farm import FakeFarm, comes_true
from tests.support.faults.disk_faults import SmallDisk, small_disk

pytestmark = [pytest.mark.anyio, pytest.mark.fault(29)]


@pytest.fixture
def small(short_path: Path) -> Iterator[SmallDisk]:
    with small_disk(short_path / "disk", 8) as disk:
        yield disk


def waits(logged: list[EventDict]) -> list[EventDict]:
    return [entry for entry in logged if entry["event"] == "agent_waits_for_space"]


async def test_a_first_start_on_a_full_disk_spends_no_token(
    small: SmallDisk, config: AgentConfig, played: FakeFarm
) -> None:
    config = config.model_copy(update={"data_dir": small.folder / "agent", "reserve_bytes": 2**20})
    small.fill()
    with capture_logs() as logged:
        agent = asyncio.create_task(run_agent(config, SystemClock()))
        try:
            await comes_true(lambda: bool(waits(logged)), "it waits for space")
            assert played.enrollments == 0
            assert not (config.data_dir / CREDENTIAL_FILE).exists()
            small.free()
            await played.until(lambda: bool(played.exchanges))
        finally:
            agent.cancel()
            with suppress(asyncio.CancelledError):
                await agent
    assert waits(logged)[0]["folder"] == str(config.data_dir)
    assert played.enrollments == 1
    assert json.loads((config.data_dir / CREDENTIAL_FILE).read_text())["host_id"] == config.host


async def test_a_lock_is_held_on_a_full_disk(small: SmallDisk) -> None:
    with host_lock(small.folder):
        pass
    (small.folder / "agent.lock").write_bytes(b"")
    small.fill()
    with host_lock(small.folder):
        assert (small.folder / "agent.lock").read_bytes() == b""
