"""One attempt on a real phone behind a real adb server, with adb's row of it taken away and put back."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import httpx
import pytest

from agents.adb.client import AdbClient
from agents.adb.listing import connect
from agents.adb.server import AdbServer
from agents.adb.smartsocket import smart_socket
from agents.blobs import BlobCache
from agents.device.conditions import read_condition
from agents.device.execute import start_run
from agents.farm_api import FarmApi
from agents.hand import Hand
from agents.journal import Entry
from agents.runner import Runner
from agents.virtual.pool import PhoneHandle
from agents.watch import Phone, PhoneWatch
from farm.clock import SystemClock
from farm.core.attempt import AttemptState
from farm.core.evidence import Evidence
from farm.core.ids import AttemptId, DeviceId, JobId
from farm.core.plan import RunPlan

pytestmark = pytest.mark.anyio


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
                adb = AdbClient(server.port)
                watch = PhoneWatch(adb=adb, hand=hand, clock=clock, random=random, tasks=tasks)
                runner = Runner(
                    phones=watch, blobs=blobs, clock=clock, random=random, phone_cache_limit_bytes=2**30
                )
                bench = Bench(server.port, phone, hand, watch, runner)
                await bench.attach()
                watch.note_states({phone.address: "device"})
                yield bench
                raise _Over
        except* _Over:
            pass


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


async def test_a_run_that_was_noted_before_the_phone_restarted_is_not_started(bench: Bench) -> None:
    phone = await bench.phone()
    before = await read_condition(phone.device, phone.facts.work_root, SystemClock().now())
    noted = bench.entry(1, "echo done")
    draft = Evidence(fence=1, argv=noted.plan.argv, before=replace(before, boot_id="another boot"))
    evidence = await bench.runner.run(replace(noted, draft=draft), unheard, adopt=True)
    assert isinstance(evidence, Evidence)
    assert evidence.trouble is not None
    assert evidence.exit is None


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
