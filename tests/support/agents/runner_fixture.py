"""A phone that the agent takes for online behind a real adb server, and the runner that works on it."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer
from agents.adb.shell_v2 import ShellResult
from agents.adb.smartsocket import smart_socket
from agents.attempts.artifact_cache import ArtifactCache
from agents.attempts.runner import AttemptRunner
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.adb_supervisor import AdbSupervisor
from agents.devices.backpressure import Backpressure
from agents.devices.monitor import CONDITION_INTERVAL_S, DeviceMonitor, OnlineDevice
from agents.farm_api import FarmApi
from agents.outbox.attempt_journal import JournalRecord
from agents.virtual.pool import VirtualDeviceHandle
from farm.clock import SystemClock
from farm.core.base.ids import AttemptId, DeviceId, JobId
from farm.core.errors import DeviceOffline
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import RunPlan


class CountingDevice(AdbDevice):
    """A phone that counts what it was asked."""

    def __init__(self, client: "CountingAdb", serial: str, work_root: str) -> None:
        super().__init__(client, serial, work_root)
        self._counting = client

    async def shell(self, command: str, *, deadline_s: float, **more: Any) -> ShellResult:
        self._counting.asked += 1
        self._counting.last_command = command
        return await super().shell(command, deadline_s=deadline_s, **more)


class CountingAdb(AdbClient):
    """Gives out phones that count together."""

    asked = 0
    last_command = ""

    def device(self, serial: str, work_root: str = "") -> CountingDevice:
        return CountingDevice(self, serial, work_root)


class _Over(Exception):
    """The test is, and the tasks that never end by themselves must."""


@dataclass(frozen=True)
class Bench:
    """A phone that the agent takes for online, and the runner that works on it."""

    server: AdbServer
    handle: VirtualDeviceHandle
    active: ActiveAttempts
    monitor: DeviceMonitor
    runner: AttemptRunner
    adb: "CountingAdb"
    #: Makes runners that differ from ours.
    runner_with: Callable[..., AttemptRunner]

    @property
    def device_id(self) -> DeviceId:
        return DeviceId(self.handle.serial)

    async def attach(self) -> None:
        """Have adb connect to the phone, as soon as it listens: it may just be starting anew."""
        async with asyncio.timeout(120):
            while True:
                try:
                    return await AdbClient(self.server.address).connect(self.handle.address)
                except DeviceOffline:
                    await asyncio.sleep(0.1)

    async def detach(self) -> None:
        """Take the phone away, behind the back of the agent."""
        async with smart_socket(self.server.address) as socket:
            await socket.request(f"host:disconnect:{self.handle.address}")

    @asynccontextmanager
    async def kept(self, *further: str, ping_s: float = 0.5) -> AsyncIterator[Backpressure]:
        """Have the agent's own supervisor look after server, listing and address, and `further` addresses."""
        pressure = Backpressure(asyncio.Event())
        supervisor = AdbSupervisor(
            server=self.server,
            adb=self.adb,
            monitor=self.monitor,
            pressure=pressure,
            clock=SystemClock(),
            random=Random(1),
            ping_s=ping_s,
        )
        work = [supervisor.keep_connected(address) for address in (self.handle.address, *further)]
        tasks = [asyncio.create_task(each) for each in (supervisor.track(), supervisor.ping(), *work)]
        try:
            yield pressure
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def come_back(self) -> OnlineDevice:
        """Have the agent notice that the phone was away, as soon as adb lists it again."""
        self.monitor.apply_listing({self.handle.address: "offline"})
        async with asyncio.timeout(120), aclosing(self.adb.track_devices()) as listings:
            async for state_by_serial in listings:
                if state_by_serial.get(self.handle.address) == "device":
                    break
        self.monitor.apply_listing({self.handle.address: "device"})
        return await self.phone()

    async def phone(self) -> OnlineDevice:
        async with asyncio.timeout(120):
            return await self.monitor.wait(self.device_id)

    def entry(self, fence: int, script: str) -> JournalRecord:
        plan = RunPlan(harness="test", backend="cpu", files=(), argv=("sh", "-c", script), timeout_s=20.0)
        return JournalRecord(
            attempt_id=AttemptId(fence),
            job_id=JobId(fence),
            device_id=self.device_id,
            fence=fence,
            plan=plan,
            phase=AttemptState.MEASURING,
            draft=Evidence(fence=fence),
        )


@asynccontextmanager
async def benched(
    folder: Path, phone: VirtualDeviceHandle, *, interval_s: float = CONDITION_INTERVAL_S
) -> AsyncIterator[Bench]:
    """Everything between a plan and a phone, but the supervisor: adb's listing is the test's to tell."""
    clock, random, active = SystemClock(), Random(1), ActiveAttempts()
    blobs = ArtifactCache(folder / "cache", FarmApi(httpx.AsyncClient()), clock, limit_bytes=0)
    async with AdbServer(folder / "adb", usb=False) as server:
        try:
            async with asyncio.TaskGroup() as tasks:
                adb = CountingAdb(server.address)
                monitor = DeviceMonitor(
                    adb=adb,
                    active=active,
                    clock=clock,
                    random=random,
                    tasks=tasks,
                    find_key=lambda: "AA:BB",
                    interval_s=interval_s,
                )
                runner_with = partial(
                    AttemptRunner,
                    monitor=monitor,
                    artifacts=blobs,
                    clock=clock,
                    random=random,
                    device_cache_limit_bytes=2**30,
                    wait_margin_s=30.0,
                    keep_awake_s=0.1,
                )
                bench = Bench(server, phone, active, monitor, runner_with(), adb, runner_with)
                await bench.attach()
                monitor.apply_listing({phone.address: "device"})
                yield bench
                raise _Over
        except* _Over:
            pass


async def unheard(phase: object, evidence: Evidence) -> None:
    """Nobody keeps a journal here."""


async def ends_within(task: asyncio.Task[object], seconds: float) -> bool:
    """Whether it does; 0.5 s is ages for a call that adb refuses, and short of any patience of ours."""
    ended, _ = await asyncio.wait({task}, timeout=seconds)
    return bool(ended)


def is_waited_for(bench: Bench) -> bool:
    """Whether a shell of the phone waits for the end of a run."""
    folder = os.fsencode(bench.handle.state)
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = file.read_bytes()
            if b"set -- wait " in command and folder in command:
                return True
    return False
