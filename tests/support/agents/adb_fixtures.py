"""A real adb server in front of real virtual phone processes."""

from collections.abc import Awaitable, Callable, Iterator

import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices

Attach = Callable[[VirtualDeviceHandle], Awaitable[AdbDevice]]


@pytest.fixture(scope="session")
def shared_phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualDeviceHandle]:
    """One phone for all tests that leave it as it was."""
    folder = tmp_path_factory.mktemp("phones")
    yield start_devices(1, folder)[0]
    stop_devices(folder)


@pytest.fixture
def attach(server: AdbServer) -> Attach:
    """Have the server connect to a phone."""

    async def attached(phone: VirtualDeviceHandle) -> AdbDevice:
        await AdbClient(server.port).connect(phone.address)
        return AdbClient(server.port).device(phone.address)

    return attached


@pytest.fixture
async def device(attach: Attach, shared_phone: VirtualDeviceHandle) -> AdbDevice:
    return await attach(shared_phone)


@pytest.fixture
async def own_device(attach: Attach, phone: VirtualDeviceHandle) -> AdbDevice:
    return await attach(phone)
