"""A real adb server in front of real virtual phone processes."""

from collections.abc import Awaitable, Callable, Iterator

import pytest

from agents.adb.adbutils_listing import connect
from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer
from agents.virtual.pool import PhoneHandle, start_phones, stop_phones

Attach = Callable[[PhoneHandle], Awaitable[AdbDevice]]


@pytest.fixture(scope="session")
def shared_phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoneHandle]:
    """One phone for all tests that leave it as it was."""
    folder = tmp_path_factory.mktemp("phones")
    yield start_phones(1, folder)[0]
    stop_phones(folder)


@pytest.fixture
def attach(server: AdbServer) -> Attach:
    """Have the server connect to a phone."""

    async def attached(phone: PhoneHandle) -> AdbDevice:
        await connect(server.port, phone.address)
        return AdbClient(server.port).device(phone.address)

    return attached


@pytest.fixture
async def device(attach: Attach, shared_phone: PhoneHandle) -> AdbDevice:
    return await attach(shared_phone)


@pytest.fixture
async def own_device(attach: Attach, phone: PhoneHandle) -> AdbDevice:
    return await attach(phone)
