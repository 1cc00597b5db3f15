"""A real adb server in front of real virtual phone processes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.listing import connect
from agents.adb.server import AdbServer
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import PhoneHandle, start_phones, stop_phones

Attach = Callable[[PhoneHandle], Awaitable[AdbDevice]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared_phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoneHandle]:
    """One phone for all tests that leave it as it was."""
    folder = tmp_path_factory.mktemp("phones")
    yield start_phones(1, folder)[0]
    stop_phones(folder)


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[PhoneHandle]:
    """A phone of the test's own, to be broken."""
    phone = start_phones(1, tmp_path / "phones")[0]
    yield phone
    set_faults(phone.state, Faults())
    stop_phones(tmp_path / "phones")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AdbServer]:
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        yield server


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
