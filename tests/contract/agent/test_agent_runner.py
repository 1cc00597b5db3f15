"""One attempt on a real phone behind a real adb server, with adb's row of it taken away and put back."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.listing import connect
from agents.adb.server import AdbServer
from agents.adb.shell_v2 import ShellResult
from agents.adb.smartsocket import smart_socket
from agents.blobs import BlobCache
from agents.device.conditions import read_condition
from agents.device.execute import start_run
from agents.farm_api import FarmApi
from agents.hand import Hand
from agents.journal import Entry, Phase
from agents.runner import Runner
from agents.virtual.pool import PhoneHandle
from agents.watch import Phone, PhoneWatch
from farm.clock import SystemClock
from farm.core.attempt import AttemptState
from farm.core.evidence import Evidence
from farm.core.ids import AttemptId, DeviceId, JobId
from farm.core.plan import RunPlan

pytestmark = pytest.mark.anyio


class CountingDevice(AdbDevice):
    """A phone that counts what it was asked."""

    def __init__(self, client: "CountingAdb", serial: str) -> None:
        super().__init__(client, serial)
        self._counting = client

    async def shell(self, command: str, *, deadline_s: float, **more: Any) -> ShellResult:
        self._counting.asked += 1
        return await super().shell(command, deadline_s=deadline_s, **more)


class CountingAdb(AdbClient):
    """Gives out phones that count together."""

    asked = 0

    def device(self, serial: str) -> CountingDevice:
        return CountingDevice(self, serial)


class _Over(Exception):
    """The test is, and the tasks that never end by themselves must."""


@dataclass(frozen=True)
class Bench:
    """A phone that the agent takes for online, and the runner that works on it."""

    port: int
    handle: PhoneHandle
    hand: Hand
    watch: PhoneWatch
    runner: Runner
    adb: "CountingAdb"

    @property
    def device_id(self) -> DeviceId:
        return DeviceId(self.handle.serial)

    async def attach(self) -> None:
        await connect(self.port, self.handle.address)

    async def detach(self) -> None:
        """Take the phone away, behind the back of the agent."""
        async with smart_socket(self.port) as socket:
            await socket.request(f"host:disconnect:{self.handle.address}")

    async def phone(self) -> Phone:
        async with asyncio.timeout(20):
            return await self.watch.wait(self.device_id)

    def entry(self, fence: int, script: str) -> Entry:
        plan = RunPlan(harness="test", backend="cpu", files=(), argv=("sh", "-c", script), timeout_s=20.0)
        return Entry(
            attempt_id=AttemptId(fence),
            job_id=JobId(fence),
            device_id=self.device_id,
            fence=fence,
            plan=plan,
            phase=AttemptState.MEASURING,
            draft=Evidence(fence=fence),
        )


@pytest.fixture
async def bench(tmp_path: Path, phone: PhoneHandle) -> AsyncIterator[Bench]:
    clock, random, hand = SystemClock(), Random(1), Hand()
    blobs = BlobCache(tmp_path / "cache", FarmApi(httpx.AsyncClient()), clock, limit_bytes=0)
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        try:
            async with asyncio.TaskGroup() as tasks:
                adb = CountingAdb(server.port)
                watch = PhoneWatch(adb=adb, hand=hand, clock=clock, random=random, tasks=tasks)
                runner = Runner(
                    phones=watch,
                    blobs=blobs,
                    clock=clock,
                    random=random,
                    phone_cache_limit_bytes=2**30,
                    wait_margin_s=0.5,
                    stand_by_s=0.1,
                )
                bench = Bench(server.port, phone, hand, watch, runner, adb)
                await bench.attach()
                watch.note_states({phone.address: "device"})
                yield bench
                raise _Over
        except* _Over:
            pass


@pytest.mark.fault(3, 24)
async def test_a_run_is_adopted_although_the_phone_is_away_for_a_moment(bench: Bench) -> None:
    phone = await bench.phone()
    await start_run(phone.device, phone.facts.work_root, 1, ["sh", "-c", "echo done"], {}, 20.0)
    await bench.detach()
    adopting = asyncio.create_task(bench.runner.run(bench.entry(1, "echo done"), unheard, adopt=True))
    assert not await ends_within(adopting, 0.5)
    await bench.attach()
    evidence = await adopting
    assert isinstance(evidence, Evidence)
    assert evidence.trouble is None
    assert evidence.stdout == "done\n"


async def test_a_run_that_was_noted_and_not_started_is_started_by_the_next_life(bench: Bench) -> None:
    phone = await bench.phone()
    before = await read_condition(phone.device, phone.facts.work_root, SystemClock().now())
    noted = bench.entry(1, "echo $WORD")
    draft = Evidence(fence=1, argv=noted.plan.argv, before=before)
    plan = replace(noted.plan, env={"WORD": "done"})
    evidence = await bench.runner.run(replace(noted, plan=plan, draft=draft), unheard, adopt=True)
    assert isinstance(evidence, Evidence)
    assert evidence.trouble is None
    assert evidence.stdout == "done\n"
    assert evidence.before == before


@pytest.mark.fault(4)
async def test_a_run_that_was_noted_before_the_phone_restarted_is_not_started(bench: Bench) -> None:
    phone = await bench.phone()
    before = await read_condition(phone.device, phone.facts.work_root, SystemClock().now())
    noted = bench.entry(1, "echo done")
    draft = Evidence(fence=1, argv=noted.plan.argv, before=replace(before, boot_id="another boot"))
    evidence = await bench.runner.run(replace(noted, draft=draft), unheard, adopt=True)
    assert isinstance(evidence, Evidence)
    assert evidence.trouble is not None
    assert evidence.exit is None


async def test_a_warm_job_is_three_calls_to_the_phone_and_one_phase_on_disk(bench: Bench) -> None:
    """Start; wait, with what the run left; clean up, with all that the next one has to know."""
    phone, phases = await bench.phone(), list[Phase]()

    async def note(phase: Phase, draft: Evidence) -> None:
        phases.append(phase)

    for fence in (1, 2, 3):
        bench.adb.asked = 0
        phases.clear()
        evidence = await bench.runner.run(bench.entry(fence, "echo done"), note, adopt=False)
        assert isinstance(evidence, Evidence)
        assert evidence.trouble is None, evidence.trouble
        assert evidence.before is not None
        assert evidence.before.boot_id == phone.boot_id
        await bench.runner.clear(bench.device_id, fence, stay_awake=True)
    assert bench.adb.asked == 3
    assert phases == [AttemptState.MEASURING]


async def test_a_phone_whose_services_hang_after_a_run_does_not_cost_the_run(bench: Bench) -> None:
    await bench.phone()
    asks = bench.handle.state / "bin/dumpsys"
    hang = f"sleep 0.2; rm {asks}; echo 'exec sleep 20' >{asks}; chmod 755 {asks}; echo done"
    entry = bench.entry(1, hang)
    evidence = await bench.runner.run(replace(entry, plan=replace(entry.plan, timeout_s=1.0)), unheard, False)
    assert isinstance(evidence, Evidence)
    assert evidence.trouble is None, evidence.trouble
    assert (evidence.stdout, evidence.after) == ("done\n", None)
    assert evidence.exit is not None


@pytest.mark.parametrize("next_comes", [False, True])
async def test_a_screen_that_waited_for_a_next_run_is_let_go_when_none_comes(
    bench: Bench, next_comes: bool
) -> None:
    await bench.phone()
    screen = bench.handle.state / "settings/global/stay_on_while_plugged_in"
    screen.parent.mkdir(parents=True, exist_ok=True)
    screen.write_text("3\n")
    await bench.runner.run(bench.entry(1, "true"), unheard, adopt=False)
    await bench.runner.clear(bench.device_id, 1, stay_awake=True)
    assert screen.read_text() == "15\n"
    await bench.runner.stand_by(bench.device_id, lambda: not next_comes)
    assert screen.read_text() == ("15\n" if next_comes else "3\n")


async def test_a_phone_that_cannot_be_cleaned_is_not_called_online_for_long(bench: Bench) -> None:
    await bench.phone()
    await bench.detach()
    clearing = asyncio.create_task(bench.runner.clear(bench.device_id, 1))
    async with asyncio.timeout(20):
        while bench.watch.find(bench.device_id) is not None:
            bench.hand.changed.clear()
            await bench.hand.changed.wait()
    await bench.attach()
    await clearing
    assert await bench.phone()


async def unheard(phase: object, evidence: Evidence) -> None:
    """Nobody keeps a journal here."""


async def ends_within(task: asyncio.Task[object], seconds: float) -> bool:
    """Whether it does; 0.5 s is ages for a call that adb refuses, and short of any patience of ours."""
    ended, _ = await asyncio.wait({task}, timeout=seconds)
    return bool(ended)
