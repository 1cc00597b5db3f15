"""TCP phones stay attached to a real adb server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from agents.adb.client import AdbClient
from agents.adb.server import AdbServer
from agents.adb.smartsocket import smart_socket
from agents.devices.adb_supervisor import AdbSupervisor
from agents.virtual.pool import VirtualDeviceHandle
from farm.clock import SystemClock
from tests.support.agents.adb_supervisor_fixture import watching

pytestmark = pytest.mark.anyio


async def until_listed(adb: AdbClient, address: str) -> None:
    async with asyncio.timeout(120), aclosing(adb.track_devices()) as listings:
        async for state_by_serial in listings:
            if state_by_serial.get(address) == "device":
                return


async def test_a_phone_that_adb_dropped_is_attached_again(tmp_path: Path, phone: VirtualDeviceHandle) -> None:
    async with AdbServer(tmp_path / "adb", usb=False) as server, watching(server, phone.address):
        adb = AdbClient(server.address)
        await until_listed(adb, phone.address)
        async with smart_socket(server.address) as socket:
            await socket.request(f"host:disconnect:{phone.address}")
        await until_listed(adb, phone.address)


async def test_a_phone_that_someone_attached_already_stays_the_same_row(
    tmp_path: Path, phone: VirtualDeviceHandle
) -> None:
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        await AdbClient(server.address).connect(phone.address)
        await until_listed(AdbClient(server.address), phone.address)
        before = await _rows(server)
        async with watching(server, phone.address):
            await until_listed(AdbClient(server.address), phone.address)
        assert await _rows(server) == before


async def _rows(server: AdbServer) -> bytes:
    async with smart_socket(server.address) as socket:
        await socket.request("host:devices-l")
        return await socket.read_block()


async def test_a_cancelled_supervisor_leaves_no_connection_to_the_server_open() -> None:
    entered, closed = asyncio.Event(), asyncio.Event()

    async def track_devices() -> AsyncGenerator[dict[str, str], None]:
        try:
            yield {}
        finally:
            closed.set()

    async def list_transports() -> None:
        entered.set()
        await asyncio.Event().wait()

    adb: Any = SimpleNamespace(track_devices=track_devices, list_transports=list_transports)
    monitor: Any = SimpleNamespace(names={"usb:1-1": "phone-1"})
    unused: Any = None
    supervisor = AdbSupervisor(
        server=unused,
        adb=adb,
        monitor=monitor,
        pressure=unused,
        clock=SystemClock(),
        random=Random(1),
    )
    tracking = asyncio.create_task(supervisor.track())
    await entered.wait()
    tracking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await tracking
    assert closed.is_set()
