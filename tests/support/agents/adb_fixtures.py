"""Real adb servers, the agent's and an operator's, in front of real virtual phone processes."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer, bundled_adb, server_environment
from agents.adb.smartsocket import tcp_address
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices
from farm.core.errors import AdbServerDown
from tests.support.faults.port_faults import held_port

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
        await AdbClient(server.address).connect(phone.address)
        return AdbClient(server.address).device(phone.address)

    return attached


@pytest.fixture
async def device(attach: Attach, shared_phone: VirtualDeviceHandle) -> AdbDevice:
    return await attach(shared_phone)


@pytest.fixture
async def own_device(attach: Attach, phone: VirtualDeviceHandle) -> AdbDevice:
    return await attach(phone)


class OperatorsServer:
    """An adb server on a port, which an agent may share; it sees TCP phones only."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was not started"
        return self._process.pid

    async def start(self) -> None:
        (self._folder / "home").mkdir(parents=True, exist_ok=True)
        (self._folder / "tmp").mkdir(exist_ok=True)
        self._process = await asyncio.create_subprocess_exec(
            *(bundled_adb(), "-P", str(self.port), "server", "nodaemon"),
            env=server_environment(os.environ, self._folder, False, None),
            stderr=subprocess.DEVNULL,
        )
        async with asyncio.timeout(60):
            while not await self.answers():  # noqa: ASYNC110 - another process tells of nothing
                await asyncio.sleep(0.02)

    async def answers(self) -> bool:
        try:
            return await AdbClient(tcp_address(self.port)).version() > 0
        except AdbServerDown:
            return False

    async def stop(self) -> None:
        assert self._process is not None, "it was not started"
        self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def operators_server(folder: Path) -> AsyncIterator[OperatorsServer]:
    """Run one; whatever life of it runs at the end is ended."""
    with held_port() as port:
        server = OperatorsServer(folder, port)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()
