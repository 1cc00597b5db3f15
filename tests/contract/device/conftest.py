"""A virtual phone behind a real adb server, for each test that needs one."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.listing import connect
from agents.adb.server import AdbServer
from agents.device.facts import read_facts
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import PhoneHandle, start_phones, stop_phones


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[PhoneHandle]:
    phone = start_phones(1, tmp_path / "phones")[0]
    yield phone
    set_faults(phone.state, Faults())
    stop_phones(tmp_path / "phones")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AdbServer]:
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        yield server


@pytest.fixture
async def device(server: AdbServer, phone: PhoneHandle) -> AdbDevice:
    await connect(server.port, phone.address)
    return AdbClient(server.port).device(phone.address)


@pytest.fixture
async def work_root(device: AdbDevice) -> str:
    return (await read_facts(device)).work_root
