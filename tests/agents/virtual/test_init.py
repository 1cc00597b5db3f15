"""The init of a virtual phone: what lost its parent there stays the phone's."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.host.process import end_process, start_ticks, stat_fields
from agents.virtual.faults import Faults, set_faults
from agents.virtual.init import INIT_FILE
from agents.virtual.pool import VirtualDeviceHandle, start_devices
from tests.support.agents.shell_phone import eventually, written_pid

pytestmark = pytest.mark.anyio
DEADLINE_S = 120.0


async def escaped(device: AdbDevice, folder: Path) -> int:
    """Start a process without environment, session and folder of the phone, whose parent ends."""
    file = folder / "pid"
    program = f"cd /; echo $$ >'{file}'; exec sleep 60"
    command = (
        f'(setsid env -i /bin/sh -c "{program.replace("$", chr(92) + "$")}" </dev/null >/dev/null 2>&1 &)'
    )
    await device.shell(command, deadline_s=DEADLINE_S)
    return await asyncio.to_thread(written_pid, file)


def inits(state: Path) -> list[int]:
    return [int(word.partition(":")[0]) for word in (state / INIT_FILE).read_text().split()]


async def test_init_gets_what_lost_its_parent_and_ends_after_it(
    own_device: AdbDevice, phone: VirtualDeviceHandle, tmp_path: Path
) -> None:
    pid = await escaped(own_device, tmp_path)
    (init,) = inits(phone.state)
    await asyncio.to_thread(eventually, lambda: int(stat_fields(pid)[1]) == init)
    assert end_process(phone.pid, lambda _: True, deadline_s=DEADLINE_S)
    assert start_ticks(init) is not None
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(eventually, lambda: start_ticks(init) is None)


async def test_a_reboot_ends_what_threw_its_environment_away(
    own_device: AdbDevice, phone: VirtualDeviceHandle, tmp_path: Path
) -> None:
    pid = await escaped(own_device, tmp_path)
    set_faults(phone.state, Faults(reboots=1, reboot_s=0.05))
    await asyncio.to_thread(eventually, lambda: start_ticks(pid) is None)


async def test_a_phone_that_is_started_again_has_the_orphans_of_the_one_before(
    own_device: AdbDevice, phone: VirtualDeviceHandle, tmp_path: Path
) -> None:
    pid = await escaped(own_device, tmp_path)
    assert end_process(phone.pid, lambda _: True, deadline_s=DEADLINE_S, signals=[signal.SIGKILL])
    await asyncio.to_thread(start_devices, 1, phone.state.parent)
    before, now = inits(phone.state)
    assert int(stat_fields(pid)[1]) == before != now
    set_faults(phone.state, Faults(reboots=1, reboot_s=0.05))
    await asyncio.to_thread(eventually, lambda: start_ticks(pid) is None)
