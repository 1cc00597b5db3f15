"""A virtual phone behind a real adb server, for each test that needs one."""

import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer
from agents.device.facts import read_facts
from agents.virtual.pool import VirtualDeviceHandle


@pytest.fixture
async def device(server: AdbServer, phone: VirtualDeviceHandle) -> AdbDevice:
    await AdbClient(server.address).connect(phone.address)
    one = AdbClient(server.address).device(phone.address)
    await read_facts(one)
    return one


@pytest.fixture
def work_root(device: AdbDevice) -> str:
    return device.work_root
