"""Phones that vanish, hang and come back, seen through a real adb server."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.errors import AdbServerDown, DeviceOffline, DeviceTimeout

pytestmark = pytest.mark.anyio
DEADLINE_S = 120.0


@pytest.mark.fault(1, 9)
async def test_a_phone_vanishing_within_a_command_is_offline_not_a_success(
    own_device: AdbDevice, phone: VirtualDeviceHandle, tmp_path: Path
) -> None:
    command = f"echo partial; mkfifo {tmp_path}/fifo; echo >{tmp_path}/fifo; exec sleep 60"
    call = asyncio.create_task(own_device.shell(command, deadline_s=60))
    await own_device.shell(f"until cat {tmp_path}/fifo; do :; done", deadline_s=DEADLINE_S)
    set_faults(phone.state, Faults(vanish=True))

    with pytest.raises(DeviceOffline):
        async with asyncio.timeout(DEADLINE_S):
            await call


async def test_a_vanished_phone_comes_back_on_its_port(
    own_device: AdbDevice, phone: VirtualDeviceHandle, server: AdbServer
) -> None:
    async with aclosing(AdbClient(server.address).track_devices()) as listings:
        await _until(listings, own_device.serial, "device")
        set_faults(phone.state, Faults(vanish=True))
        await _until(listings, own_device.serial, "offline")
        set_faults(phone.state, Faults())
        await _until(listings, own_device.serial, "device")

    assert (await own_device.shell("echo back", deadline_s=DEADLINE_S)).stdout == b"back\n"


@pytest.mark.fault(7)
async def test_no_call_on_a_hung_phone_outlives_its_deadline(
    own_device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    loop = asyncio.get_running_loop()
    await own_device.features(DEADLINE_S)
    with _stopped(phone.pid):
        began = loop.time()
        for call in (
            own_device.shell("true", deadline_s=0.3),
            own_device.read("/etc/hostname", limit_bytes=10, deadline_s=0.3),
        ):
            with pytest.raises(DeviceTimeout):
                await call
        assert loop.time() - began < DEADLINE_S


async def test_a_phone_told_to_hang_answers_nothing_until_it_is_well(
    own_device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    set_faults(phone.state, Faults(hang=True))
    async with asyncio.timeout(DEADLINE_S):
        while await _answers(own_device):
            pass

    set_faults(phone.state, Faults())
    assert (await own_device.shell("echo well", deadline_s=DEADLINE_S)).stdout == b"well\n"


async def test_a_phone_adb_does_not_know_is_offline(server: AdbServer) -> None:
    with pytest.raises(DeviceOffline, match="not found"):
        await AdbClient(server.address).device("nobody").shell("true", deadline_s=DEADLINE_S)


async def test_connecting_where_nothing_listens_is_an_error(server: AdbServer) -> None:
    with pytest.raises(DeviceOffline):
        await AdbClient(server.address).connect("127.0.0.1:1")


async def test_a_server_that_died_is_not_the_phones_fault(own_device: AdbDevice, server: AdbServer) -> None:
    await own_device.features(DEADLINE_S)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)

    with pytest.raises(AdbServerDown):
        await own_device.shell("true", deadline_s=DEADLINE_S)


async def test_a_wedged_server_is_not_the_phones_fault(own_device: AdbDevice, server: AdbServer) -> None:
    await own_device.features(DEADLINE_S)
    assert server.pid is not None
    with _stopped(server.pid), pytest.raises(AdbServerDown):
        await own_device.shell("true", deadline_s=0.2)


async def test_heat_and_a_low_battery_show_in_dumpsys(
    own_device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    set_faults(phone.state, Faults(thermal_status=3, skin_c=47.5, battery_level_pct=7, charging=False))
    is_so = "dumpsys battery | grep -q 'level: 7' && dumpsys thermalservice | grep -q 'Status: 3'"
    command = f"until {is_so}; do sleep 0.02; done; dumpsys battery; dumpsys thermalservice"

    text = (await own_device.shell(command, deadline_s=DEADLINE_S)).stdout.decode()

    assert "Thermal Status: 3" in text
    assert "mValue=47.5, mType=3" in text
    assert "level: 7" in text


async def _answers(device: AdbDevice) -> bool:
    try:
        await device.shell("true", deadline_s=1.5)
    except DeviceTimeout:
        return False
    return True


async def _until(listings: AsyncIterator[dict[str, str]], serial: str, state: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        async for state_by_serial in listings:
            if state_by_serial.get(serial) == state:
                return


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
