"""Probe, facts, conditions and gates, over a real adb server."""

import asyncio
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.device.conditions import read_condition
from agents.device.facts import read_facts
from agents.device.paths import stay_on_record
from agents.device.probe import probe, read_fence
from agents.device.run.gates import keep_device_awake, restore_screen_state, wait_for_gates
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.clock import SystemClock
from farm.core.base.bounds import MAX_FENCE
from farm.core.devices.condition import Condition, Gates, ThermalStatus
from farm.core.devices.controls import Controls, Screen
from farm.core.devices.device import Presence
from farm.core.devices.screen_state import ScreenState

pytestmark = pytest.mark.anyio
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
NOW = datetime(2024, 5, 6, tzinfo=UTC)
GATES = Gates(min_storage_bytes=0, wait_s=0)
STAY_ON = "global stay_on_while_plugged_in"


async def condition_when(device: AdbDevice, work_root: str, claim: Callable[[Condition], bool]) -> Condition:
    """The first condition that a change of the phone's faults shows in."""
    async with asyncio.timeout(120):
        while not claim(found := await read_condition(device, NOW)):
            pass
    return found


async def test_a_phone_that_answers_end_to_end_is_online(device: AdbDevice) -> None:
    assert await probe(device) is Presence.ONLINE


async def test_a_phone_that_is_still_booting_is_not_online(device: AdbDevice) -> None:
    await device.shell("setprop sys.boot_completed 0", deadline_s=60)
    assert await probe(device) is Presence.BOOTING


async def test_a_phone_that_hangs_is_offline_within_the_deadline(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    set_faults(phone.state, Faults(hang=True))
    async with asyncio.timeout(120):
        while await probe(device, deadline_s=0.3) is Presence.ONLINE:
            pass
    assert await probe(device, deadline_s=0.3) is Presence.OFFLINE


async def test_a_phone_says_what_it_is(device: AdbDevice, phone: VirtualDeviceHandle) -> None:
    facts = await read_facts(device)
    assert facts.serialno == phone.serial
    assert facts.virtual
    assert facts.cpu_domain
    assert facts.work_root.startswith(str(phone.state))
    assert facts.cores
    assert facts.memory_bytes
    assert facts.memory_bytes > 2**28
    assert facts.abi in {"x86_64", "arm64-v8a"}
    assert facts.kernel == platform.release()


async def test_a_condition_is_read_off_the_phone(
    device: AdbDevice, work_root: str, phone: VirtualDeviceHandle
) -> None:
    hot = Faults(thermal_status=2, skin_c=44.5, battery_level_pct=55, battery_c=31.5, charging=False)
    set_faults(phone.state, hot)
    found = await condition_when(device, work_root, lambda found: found.skin_c == 44.5)
    assert found.thermal_status is ThermalStatus.MODERATE
    assert (found.battery_level_pct, found.battery_c, found.charging) == (55, 31.5, False)
    assert found.taken_at == NOW
    assert found.boot_id == BOOT_ID
    for value in (found.uptime_s, found.load_1m, found.memory_available_bytes, found.storage_free_bytes):
        assert value is not None


async def test_open_gates_are_passed_at_once(device: AdbDevice) -> None:
    ready = await wait_for_gates(device, GATES, clock=SystemClock(), interval_s=60)
    assert ready.shut == ()


async def test_a_gate_that_stays_shut_puts_the_run_off_with_its_reason(
    device: AdbDevice, work_root: str, phone: VirtualDeviceHandle
) -> None:
    set_faults(phone.state, Faults(thermal_status=1))
    await condition_when(device, work_root, lambda found: found.thermal_status == 1)
    ready = await wait_for_gates(device, GATES, clock=SystemClock(), interval_s=60)
    assert ready.shut == ("thermal status LIGHT, at most NONE",)


async def test_a_gate_that_opens_in_time_is_waited_for(
    device: AdbDevice, work_root: str, phone: VirtualDeviceHandle
) -> None:
    set_faults(phone.state, Faults(thermal_status=1))
    await condition_when(device, work_root, lambda found: found.thermal_status == 1)
    gates = Gates(min_storage_bytes=0, wait_s=30)
    told: asyncio.Queue[str | None] = asyncio.Queue()
    waiting = asyncio.create_task(
        wait_for_gates(device, gates, clock=SystemClock(), interval_s=0.02, tell=told.put_nowait)
    )
    # Whoever asks why nothing runs there hears of it as soon as it is known.
    assert await told.get() == "thermal status LIGHT, at most NONE"
    set_faults(phone.state, Faults())
    ready = await waiting
    assert [told.get_nowait() for _ in range(told.qsize())][-1] is None
    assert ready.shut == ()
    assert ready.condition.thermal_status is None  # a cool virtual phone has no HAL that would say so


@pytest.mark.parametrize("before", ["null", "3"])
async def test_a_phone_is_kept_awake_and_put_back_whoever_does_that(device: AdbDevice, before: str) -> None:
    if before != "null":
        await device.shell(f"settings put {STAY_ON} {before}", deadline_s=60)
    noted = ScreenState(stay_awake=before != "null", screen_on=None)
    assert await keep_device_awake(device, Controls()) == noted
    # An agent that was killed here does so again, in its next life, with its own setting in place.
    assert await keep_device_awake(device, Controls()) == noted
    assert await stay_on(device) == "15"
    await restore_screen_state(device)
    assert await stay_on(device) == before


@pytest.mark.parametrize(("before", "wanted"), [("Asleep", Screen.ON), ("Awake", Screen.OFF)])
@pytest.mark.parametrize("awake", [True, False])
async def test_a_screen_is_as_it_was_found_once_the_phone_is_put_back(
    device: AdbDevice, phone: VirtualDeviceHandle, before: str, wanted: Screen, awake: bool
) -> None:
    (phone.state / "wakefulness").write_text(f"{before}\n")
    found = await keep_device_awake(device, Controls(screen=wanted, stay_awake=awake))
    assert found == ScreenState(stay_awake=False, screen_on=before == "Awake")
    kept = await read_condition(device, NOW)
    assert (kept.screen_on, kept.stay_awake) == (wanted is Screen.ON, awake)
    await restore_screen_state(device)
    again = await read_condition(device, NOW)
    assert (again.screen_on, again.stay_awake) == (before == "Awake", False)


async def test_a_record_of_an_earlier_release_is_put_back(device: AdbDevice, work_root: str) -> None:
    record = stay_on_record(work_root)
    await device.shell(f"mkdir -p $(dirname {record}); echo 3 >{record}", deadline_s=60)
    assert await keep_device_awake(device, Controls()) == ScreenState(stay_awake=True)
    await restore_screen_state(device)
    assert await stay_on(device) == "3"


async def test_a_phone_that_no_one_kept_awake_is_left_as_it_is(device: AdbDevice) -> None:
    await keep_device_awake(device, Controls())
    await restore_screen_state(device)
    await device.shell(f"settings put {STAY_ON} 7", deadline_s=60)
    await restore_screen_state(device)
    assert await stay_on(device) == "7"


async def test_what_cannot_be_put_back_is_not_changed(device: AdbDevice, work_root: str) -> None:
    await device.shell(f"mkdir -p {stay_on_record(work_root)}.new", deadline_s=60)
    await keep_device_awake(device, Controls())
    assert await stay_on(device) == "null"
    await restore_screen_state(device)


async def stay_on(device: AdbDevice) -> str:
    return (await device.shell(f"settings get {STAY_ON}", deadline_s=60)).stdout.decode().strip()


@pytest.mark.invariant("I3")
@pytest.mark.parametrize(
    ("text", "fence"),
    [("7\n", 7), ("9007199254740990\n", MAX_FENCE), ("-3\n", 0), ("9" * 400, 0), ("nonsense\n", 0), ("", 0)],
)
async def test_what_a_run_wrote_is_bounded(device: AdbDevice, work_root: str, text: str, fence: int) -> None:
    folder = Path(work_root) / "benchfarm"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fence").write_text(text)
    assert await read_fence(device) == fence
