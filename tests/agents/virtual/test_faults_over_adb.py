"""What else can happen to a virtual phone, seen through a real adb server: each fault does what it says."""

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer
from agents.host.process import start_ticks
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices
from agents.virtual.processes import JOURNAL_FILE, read_events
from farm.core.errors import DeviceError, DeviceTimeout
from tests.support.farm.processes import eventually

pytestmark = pytest.mark.anyio
#: A busy machine takes its time; a phone that answers ends the wait at once.
DEADLINE_S = 60.0
BOOT_ID = 'cat "${BENCHFARM_BOOT_ID:-/proc/sys/kernel/random/boot_id}"'
DETACHED = "setsid sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 600' </dev/null >/dev/null 2>&1 &"


@pytest.mark.fault(1)
async def test_a_phone_that_greets_no_one_is_listed_as_offline_until_it_is_well(
    own_device: AdbDevice, phone: VirtualDeviceHandle, server: AdbServer
) -> None:
    set_faults(phone.state, Faults(offline=True))
    await listed(server, own_device, "offline")
    set_faults(phone.state, Faults())
    await listed(server, own_device, "device")
    assert await said(own_device, "echo back") == "back"


@pytest.mark.fault(1)
@pytest.mark.parametrize("faults", [Faults(offline=True), Faults(hang=True, vanish=True)])
async def test_a_phone_that_no_one_answers_for_is_well_again_though_a_command_was_open(
    own_device: AdbDevice, phone: VirtualDeviceHandle, faults: Faults
) -> None:
    running = asyncio.create_task(own_device.shell("touch began; sleep 600", deadline_s=DEADLINE_S))
    await until((phone.state / "data" / "began").exists)
    set_faults(phone.state, faults)
    with pytest.raises(DeviceError):
        await running
    set_faults(phone.state, Faults())
    assert await eventually_said(own_device, "echo back", bool) == "back"


@pytest.mark.fault(6)
async def test_a_phone_that_forgot_every_key_is_unauthorized_until_it_is_well(
    own_device: AdbDevice, phone: VirtualDeviceHandle, server: AdbServer
) -> None:
    set_faults(phone.state, Faults(unauthorized=True))
    await listed(server, own_device, "unauthorized")
    set_faults(phone.state, Faults())
    await listed(server, own_device, "device")


@pytest.mark.fault(15)
async def test_a_phone_in_another_mode_is_listed_with_it(
    own_device: AdbDevice, phone: VirtualDeviceHandle, server: AdbServer
) -> None:
    set_faults(phone.state, Faults(mode="recovery"))
    await listed(server, own_device, "recovery")
    set_faults(phone.state, Faults())
    await listed(server, own_device, "device")


@pytest.mark.fault(4)
async def test_a_reboot_ends_what_runs_and_gives_a_new_boot_id(
    own_device: AdbDevice, phone: VirtualDeviceHandle, server: AdbServer
) -> None:
    before = await said(own_device, BOOT_ID)
    pid = await started(own_device, f"export BENCHFARM_RUN=7; {DETACHED}")
    set_faults(phone.state, Faults(reboots=1, reboot_s=0.1))
    assert await eventually_said(own_device, BOOT_ID, lambda boot_id: boot_id != before)
    assert start_ticks(pid) is None
    told = [
        (entry.event, entry.boot_id != before)
        for entry in read_events(phone.state / JOURNAL_FILE)
        if entry.event == "phone" or entry.pid == pid
    ]
    assert told == [("phone", False), ("seen", False), ("gone", False), ("phone", True)]
    assert await said(own_device, "getprop sys.boot_completed") == "1"


async def test_a_boot_id_stays_when_only_the_process_of_the_phone_is_another(
    own_device: AdbDevice, phone: VirtualDeviceHandle, server: AdbServer
) -> None:
    set_faults(phone.state, Faults(reboots=1, reboot_s=0.05))
    await until(lambda: (phone.state / "boots").read_text() == "1")
    before = await eventually_said(own_device, BOOT_ID, bool)
    folder = phone.state.parent
    await asyncio.to_thread(stop_devices, folder)
    (again,) = await asyncio.to_thread(start_devices, 1, folder)
    assert again.pid != phone.pid
    assert await eventually_said(own_device, BOOT_ID, bool) == before


@pytest.mark.fault(5)
async def test_a_phone_in_a_boot_loop_is_never_up(own_device: AdbDevice, phone: VirtualDeviceHandle) -> None:
    set_faults(phone.state, Faults(boot_loop=True, reboot_s=0.1))
    boots = phone.state / "boots"
    await until(lambda: int(boots.read_text()) >= 2)
    assert await eventually_said(own_device, "getprop sys.boot_completed; echo .", lambda text: text == ".")
    set_faults(phone.state, Faults())
    assert await eventually_said(own_device, "getprop sys.boot_completed", lambda text: text == "1")


@pytest.mark.fault(13)
@pytest.mark.parametrize("takes_runs", [False, True])
async def test_a_restart_of_adbd_drops_connections_and_takes_runs_with_it_where_it_is_told_to(
    own_device: AdbDevice, phone: VirtualDeviceHandle, takes_runs: bool
) -> None:
    before, pid = await said(own_device, BOOT_ID), await started(own_device, DETACHED)
    waiting = asyncio.create_task(own_device.shell("exec sleep 600", deadline_s=60))
    set_faults(phone.state, Faults(adbd_restarts=1, adbd_takes_runs=takes_runs))
    with pytest.raises(DeviceError):
        async with asyncio.timeout(DEADLINE_S):
            await waiting
    assert await eventually_said(own_device, BOOT_ID, bool) == before
    await until(lambda: (start_ticks(pid) is None) is takes_runs)


@pytest.mark.fault(8)
async def test_a_shell_that_only_fails_says_so_at_once(
    own_device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    set_faults(phone.state, Faults(exit1=True))
    result = await own_device.shell("echo out", deadline_s=DEADLINE_S)
    assert (result.exit_code, result.stdout) == (1, b"")


@pytest.mark.fault(7)
async def test_a_command_that_has_begun_to_talk_is_not_waited_for_longer_than_it_may(
    own_device: AdbDevice,
) -> None:
    """Silence before that counts against the deadline alone: so a run is waited for."""
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(DeviceTimeout):
        await own_device.shell("sleep 1; echo it ended; exec sleep 600", deadline_s=600, talk_s=0.5)
    assert 1.0 < asyncio.get_running_loop().time() - began_s < DEADLINE_S
    # A busy machine needs some of that time for the end of a shell that has nothing more to do.
    result = await own_device.shell("sleep 3; echo it ended", deadline_s=DEADLINE_S, talk_s=2.5)
    assert result.stdout == b"it ended\n"


async def test_a_slow_phone_answers_later(own_device: AdbDevice, phone: VirtualDeviceHandle) -> None:
    await own_device.features(DEADLINE_S)
    set_faults(phone.state, Faults(slow_ms=300))
    began_s = asyncio.get_running_loop().time()
    assert await said(own_device, "echo out") == "out"
    assert asyncio.get_running_loop().time() - began_s >= 0.3


@pytest.mark.fault(10, 11)
@pytest.mark.parametrize("faults", [Faults(truncate_pushes=1), Faults(power_cut_pushes=1)])
async def test_a_push_that_was_called_whole_is_not_what_was_sent(
    own_device: AdbDevice, phone: VirtualDeviceHandle, tmp_path: Path, faults: Faults
) -> None:
    source, target = tmp_path / "source", phone.state / "data/target"
    source.write_bytes(b"weights" * 1000)
    set_faults(phone.state, faults)
    sent = await own_device.push(source, str(target), mode=0o644, deadline_s=DEADLINE_S)
    assert sent == 7000
    assert hashlib.sha256(target.read_bytes()).digest() != hashlib.sha256(source.read_bytes()).digest()
    await own_device.push(source, str(target), mode=0o644, deadline_s=DEADLINE_S)
    assert target.read_bytes() == source.read_bytes()


async def said(device: AdbDevice, command: str) -> str:
    return (await device.shell(command, deadline_s=DEADLINE_S)).stdout.decode().strip()


async def started(device: AdbDevice, command: str) -> int:
    """Run something detached; its pid."""
    return int(await said(device, f"rm -f pid; {command} until [ -s pid ]; do sleep 0.02; done; cat pid"))


async def eventually_said(device: AdbDevice, command: str, is_it: Callable[[str], bool]) -> str:
    """What a phone says that may be away for the moment."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                if is_it(text := await said(device, command)):
                    return text
            except DeviceError:
                pass
            await asyncio.sleep(0.05)


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(eventually, condition, "the phone is as its faults say")


async def listed(server: AdbServer, device: AdbDevice, state: str) -> None:
    tracking = aclosing(AdbClient(server.address).track_devices())
    async with asyncio.timeout(DEADLINE_S), tracking as listings:
        async for state_by_serial in listings:
            if state_by_serial.get(device.serial) == state:
                return
