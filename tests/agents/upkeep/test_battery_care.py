"""Batteries of virtual phones, kept within their window through adb, and let go of again."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from agents.adb.client import AdbClient
from agents.adb.server import AdbServer
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.monitor import DeviceMonitor
from agents.outbox.attempt_journal import JournalRecord
from agents.upkeep.battery_care import PORTS_FILE, BatteryCare
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.clock import SystemClock
from farm.core.base.ids import AttemptId, DeviceId, JobId
from farm.core.devices.condition import Gates
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import RunPlan
from farm.core.upkeep.charging import ChargeWindow

pytestmark = pytest.mark.anyio
LOOKS = 1500
WINDOW = ChargeWindow(low_pct=40, high_pct=80)


class Bench:
    """A watch over one phone, and what keeps its battery."""

    def __init__(
        self, server: AdbServer, phone: VirtualDeviceHandle, folder: Path, tasks: asyncio.TaskGroup
    ) -> None:
        self.phone, self.active, self.folder = phone, ActiveAttempts(), folder
        self.identity = DeviceId(phone.serial)
        self.adb = AdbClient(server.address)
        self.monitor = DeviceMonitor(
            adb=self.adb, active=self.active, clock=SystemClock(), random=random.Random(1), tasks=tasks
        )

    def battery_care(
        self, window: ChargeWindow | None = WINDOW, *, power: Sequence[str] | None = None
    ) -> BatteryCare:
        return BatteryCare(
            adb=self.adb,
            monitor=self.monitor,
            active=self.active,
            window=window,
            power=power,
            folder=self.folder,
            interval_s=0.1,
        )

    @property
    def is_suspended(self) -> bool:
        path = self.phone.state / "sys/class/power_supply/battery/input_suspend"
        return path.exists() and path.read_text().strip() == "1"

    @property
    def note(self) -> str | None:
        condition = self.monitor.observations()[self.identity].condition
        return condition.charging_note if condition else None

    async def be(self, faults: Faults) -> None:
        """Have the phone be so, and the monitor know of it."""
        set_faults(self.phone.state, faults)
        level = faults.battery_level_pct
        await self.until(lambda: f"level: {level}" in self._dumpsys())
        while self._level() != level:
            self.monitor.reprobe(self.identity)
            await asyncio.sleep(0.05)

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(LOOKS):
            if holds():
                return
            await asyncio.sleep(0.02)
        raise AssertionError("it never was so")

    def _dumpsys(self) -> str:
        return (self.phone.state / "dumpsys" / "battery").read_text()

    def _level(self) -> int | None:
        condition = self.monitor.observations()[self.identity].condition
        return condition.battery_level_pct if condition else None


@pytest.fixture
async def bench(server: AdbServer, phone: VirtualDeviceHandle, tmp_path: Path) -> AsyncIterator[Bench]:
    set_faults(phone.state, Faults(battery_level_pct=60, rooted=True))
    await asyncio.sleep(0)
    async with asyncio.TaskGroup() as tasks:
        bench = Bench(server, phone, tmp_path, tasks)
        await bench.until(lambda: (phone.state / "rooted").exists())
        await AdbClient(server.address).connect(phone.address)
        bench.monitor.apply_listing({phone.address: "device"})
        await bench.monitor.wait(bench.identity)
        yield bench
        for task in asyncio.all_tasks():
            if task.get_name().startswith("watch "):
                task.cancel()


async def test_a_battery_is_held_at_the_top_and_charged_again_at_the_bottom(bench: Bench) -> None:
    battery_care = bench.battery_care()
    await battery_care.run_once()
    assert not bench.is_suspended
    await bench.be(Faults(battery_level_pct=85, rooted=True))
    await battery_care.run_once()
    assert bench.is_suspended
    assert bench.note is not None
    assert "at 85 %, until 40 %" in bench.note
    await bench.until(lambda: "AC powered: false" in (bench.phone.state / "dumpsys/battery").read_text())
    await bench.be(Faults(battery_level_pct=50, rooted=True))
    await battery_care.run_once()
    assert bench.is_suspended
    await bench.be(Faults(battery_level_pct=40, rooted=True))
    await battery_care.run_once()
    assert not bench.is_suspended
    assert bench.note == "charges again since 40 %"


async def test_a_phone_charges_again_when_the_agent_ends(bench: Bench) -> None:
    await bench.be(Faults(battery_level_pct=90, rooted=True))
    running = asyncio.create_task(bench.battery_care().run())
    await bench.until(lambda: bench.is_suspended)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not bench.is_suspended


async def test_a_phone_charges_again_at_the_next_contact_after_a_kill(bench: Bench) -> None:
    await bench.be(Faults(battery_level_pct=90, rooted=True))
    await bench.battery_care().run_once()
    assert bench.is_suspended
    # Another life, which looks after no batteries.
    await bench.battery_care(window=None).run_once()
    assert not bench.is_suspended


async def test_a_phone_without_root_says_that_it_cannot_be_held(bench: Bench) -> None:
    await bench.be(Faults(battery_level_pct=90, rooted=True))
    (bench.phone.state / "bin" / "su").write_text("#!/bin/sh\nexit 13\n")
    await bench.battery_care().run_once()
    assert not bench.is_suspended
    assert bench.note is not None
    assert "charging cannot be paused" in bench.note


async def test_a_phone_with_a_device_action_is_not_disturbed(bench: Bench) -> None:
    await bench.be(Faults(battery_level_pct=90, rooted=True))
    bench.active.on_device_action.add(bench.identity)
    await bench.battery_care().run_once()
    assert not bench.is_suspended


async def test_a_run_that_wants_mains_gets_them_before_it_begins(bench: Bench) -> None:
    await bench.be(Faults(battery_level_pct=90, rooted=True))
    battery_care = bench.battery_care()
    await battery_care.run_once()
    assert bench.is_suspended
    plan = RunPlan(
        harness="test", backend="cpu", files=(), argv=("true",), timeout_s=1.0, gates=Gates(mains=True)
    )
    bench.active.add(
        JournalRecord(
            attempt_id=AttemptId(1),
            job_id=JobId(1),
            device_id=bench.identity,
            fence=1,
            plan=plan,
            draft=Evidence(fence=1),
        )
    )
    await battery_care.run_once()
    assert not bench.is_suspended
    # And no pause begins while an attempt is active.
    await battery_care.run_once()
    assert not bench.is_suspended


async def test_ports_that_a_killed_agent_left_off_are_switched_on(bench: Bench) -> None:
    said = bench.folder / "said"
    (bench.folder / PORTS_FILE).write_text('[{"serial": "A1", "usb_path": "1-2"}]')
    battery_care = bench.battery_care(
        None, power=("/bin/sh", "-c", f'echo "$@" >>{said}', "sh", "{usb_path}", "{action}")
    )
    running = asyncio.create_task(battery_care.run())
    await bench.until(lambda: said.exists() and said.read_text().split() == ["1-2", "on"])
    await bench.until(lambda: not (bench.folder / PORTS_FILE).exists())
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_left_port_that_cannot_be_switched_holds_up_no_other_and_stays_written_down(
    bench: Bench,
) -> None:
    said = bench.folder / "said"
    (bench.folder / PORTS_FILE).write_text(
        '[{"serial": "A1", "usb_path": "1-1"}, {"serial": "A2", "usb_path": "1-2"}]'
    )
    script = f'[ "$1" != 1-1 ] || exit 1; echo "$@" >>{said}'
    battery_care = bench.battery_care(None, power=("/bin/sh", "-c", script, "sh", "{usb_path}", "{action}"))
    running = asyncio.create_task(battery_care.run())
    await bench.until(lambda: said.exists() and said.read_text().split() == ["1-2", "on"])
    await bench.until(lambda: "1-2" not in (bench.folder / PORTS_FILE).read_text())
    assert "1-1" in (bench.folder / PORTS_FILE).read_text()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
