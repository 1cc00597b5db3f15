"""An agent in this process, with a real adb server, real virtual phones, and a farm that the test plays."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from agents.host.config import AgentConfig
from agents.virtual.pool import VirtualDeviceHandle
from tests.support.agents.fake_farm import TOKEN, FakeFarm, serving
from tests.support.agents.runner_fixture import Bench, benched
from tests.support.faults.port_faults import held_port


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.fixture
def config(tmp_path: Path, phone: VirtualDeviceHandle, port: int) -> AgentConfig:
    return AgentConfig(
        farm_url=f"http://127.0.0.1:{port}",
        host="bench-1",
        data_dir=tmp_path / "agent",
        join_token=SecretStr(TOKEN),
        adb_connect=(phone.address,),
        adb_usb=False,
    )


@pytest.fixture
async def played(port: int) -> AsyncIterator[FakeFarm]:
    farm = FakeFarm()
    async with serving(farm.app, port):
        yield farm


@pytest.fixture
async def bench(tmp_path: Path, phone: VirtualDeviceHandle) -> AsyncIterator[Bench]:
    async with benched(tmp_path, phone) as bench:
        yield bench
