"""TCP phones stay attached to a real adb server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from agents.adb.client import AdbClient
from agents.adb.listing import connect, list_devices
from agents.adb.server import AdbServer
from agents.adb.smartsocket import smart_socket
from agents.hand import Hand
from agents.keeper import AdbKeeper
from agents.pressure import Pressure
from agents.virtual.pool import PhoneHandle
from agents.watch import PhoneWatch
from farm.clock import SystemClock

pytestmark = pytest.mark.anyio


class _Over(Exception):
    """The test is, and the tasks that never end by themselves must."""


@asynccontextmanager
async def keeping(server: AdbServer, address: str) -> AsyncIterator[None]:
    """One address is kept connected."""
    adb, random = AdbClient(server.port), Random(1)
    try:
        async with asyncio.TaskGroup() as tasks:
            watch = PhoneWatch(adb=adb, hand=Hand(), clock=SystemClock(), random=random, tasks=tasks)
            keeper = AdbKeeper(
                server=server,
                adb=adb,
                watch=watch,
                pressure=Pressure(asyncio.Event()),
                clock=SystemClock(),
                random=random,
            )
            tasks.create_task(keeper.track())
            tasks.create_task(keeper.keep_connected(address))
            yield
            raise _Over
    except* _Over:
        pass


async def until_listed(adb: AdbClient, address: str) -> None:
    async with asyncio.timeout(20):
        async for state_by_serial in adb.track_devices():
            if state_by_serial.get(address) == "device":
                return


async def test_a_phone_that_adb_dropped_is_attached_again(tmp_path: Path, phone: PhoneHandle) -> None:
    async with AdbServer(tmp_path / "adb", usb=False) as server, keeping(server, phone.address):
        adb = AdbClient(server.port)
        await until_listed(adb, phone.address)
        async with smart_socket(server.port) as socket:
            await socket.request(f"host:disconnect:{phone.address}")
        await until_listed(adb, phone.address)


async def test_a_phone_that_somebody_attached_already_stays_the_same_row(
    tmp_path: Path, phone: PhoneHandle
) -> None:
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        await connect(server.port, phone.address)
        await until_listed(AdbClient(server.port), phone.address)
        before = await list_devices(server.port)
        async with keeping(server, phone.address):
            await until_listed(AdbClient(server.port), phone.address)
        assert await list_devices(server.port) == before
