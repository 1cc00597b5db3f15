"""TCP phones stay attached to a real adb server."""

import asyncio
from pathlib import Path

import pytest

from agents.adb.adbutils_listing import connect, list_devices
from agents.adb.client import AdbClient
from agents.adb.server import AdbServer
from agents.adb.smartsocket import smart_socket
from agents.virtual.pool import VirtualDeviceHandle
from tests.support.agents.adb_supervisor_fixture import watching

pytestmark = pytest.mark.anyio


async def until_listed(adb: AdbClient, address: str) -> None:
    async with asyncio.timeout(20):
        async for state_by_serial in adb.track_devices():
            if state_by_serial.get(address) == "device":
                return


async def test_a_phone_that_adb_dropped_is_attached_again(tmp_path: Path, phone: VirtualDeviceHandle) -> None:
    async with AdbServer(tmp_path / "adb", usb=False) as server, watching(server, phone.address):
        adb = AdbClient(server.port)
        await until_listed(adb, phone.address)
        async with smart_socket(server.port) as socket:
            await socket.request(f"host:disconnect:{phone.address}")
        await until_listed(adb, phone.address)


async def test_a_phone_that_somebody_attached_already_stays_the_same_row(
    tmp_path: Path, phone: VirtualDeviceHandle
) -> None:
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        await connect(server.port, phone.address)
        await until_listed(AdbClient(server.port), phone.address)
        before = await list_devices(server.port)
        async with watching(server, phone.address):
            await until_listed(AdbClient(server.port), phone.address)
        assert await list_devices(server.port) == before
