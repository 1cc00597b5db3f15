"""Agents: lives of the real coordination, with model phones under it and a bad network above."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar, cast

from agents.attempts.attempts import AttemptController
from agents.attempts.runner import AttemptRunner
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.backpressure import Backpressure, UsbCapacity
from agents.farm_api import CALL_DEADLINE_S, FarmApi
from agents.host.atomic_file import DiskThread
from agents.link.clock_comparison import ClockComparison
from agents.link.exchange_loop import ExchangeLoop, ReportReplay
from agents.link.lease import LeaseMonitor
from agents.outbox.attempt_journal import AttemptJournal
from agents.outbox.damaged_files import DamagedFiles
from agents.outbox.sender import ReportDelivery
from agents.outbox.spool import Spool
from agents.upkeep.device_actions import DeviceActionRunner
from farm.api.http.problems import problem_document
from farm.client.responses import error_of
from farm.clock import Clock
from farm.core.base.ids import AttemptId, HostId, SessionId
from farm.core.errors import FarmError, FarmUnreachable
from farm.core.results.settle.report import ReportAnswer
from farm.wire.agents.protocol import (
    DeviceActionOrder,
    DeviceActionReport,
    Exchange,
    ExchangeAnswer,
    SessionAnswer,
    SessionOpening,
)
from tests.simulation.device_operations import AdbSide
from tests.simulation.simulated_devices import ModelPhone
from tests.simulation.simulated_farm import Process

Value = TypeVar("Value")


@dataclass
class Weather:
    """What the network between one host and the farm does to calls: shares of them, and seconds."""

    lose_request: float = 0.0
    lose_answer: float = 0.0
    double: float = 0.0
    delay_s: float = 0.05
    #: How often a request is on its way for much longer than anybody waits.
    stray: float = 0.0


class World(Protocol):
    """What agents need of the rest."""

    clock: Clock
    random: Random
    phones: dict[str, ModelPhone]
    is_calm: bool

    def spawn(self, work: Awaitable[Any]) -> "asyncio.Task[Any]": ...
    def reachable(self) -> Process: ...
    def note(self, text: str) -> None: ...


class Network:
    """Stands where `FarmApi` does; one for each life of an agent."""

    def __init__(self, agent: "Agent", life: "Life") -> None:
        self._agent = agent
        self._life = life

    async def open_session(self, opening: SessionOpening) -> SessionAnswer:
        host = self._agent.host_id
        return await self._call(lambda: self._farm().open_session(host, opening), CALL_DEADLINE_S)

    async def exchange(self, session_id: SessionId, exchange: Exchange) -> ExchangeAnswer:
        host = self._agent.host_id
        deadline_s = CALL_DEADLINE_S + exchange.wait_s
        return await self._call(lambda: self._farm().exchange(host, session_id, exchange), deadline_s)

    async def report(self, attempt_id: AttemptId, body: bytes) -> ReportAnswer:
        host = self._agent.host_id
        return await self._call(lambda: self._farm().report(host, attempt_id, body), 120.0)

    async def reports(self, bodies: Mapping[AttemptId, bytes]) -> dict[AttemptId, ReportAnswer | FarmError]:
        host = self._agent.host_id
        answers = await self._call(lambda: self._farm().reports(host, bodies), 120.0)
        return {each: _as_told(answer) for each, answer in answers.items()}

    def _farm(self) -> Process:
        return self._agent.world.reachable()

    async def _call(self, handle: Callable[[], Awaitable[Value]], deadline_s: float) -> Value:
        await self._life.gate()
        travel = self._agent.world.spawn(self._travel(handle))
        try:
            async with asyncio.timeout(deadline_s):
                answer = await asyncio.shield(travel)
        except TimeoutError as error:
            raise FarmUnreachable("no answer in time") from error
        await self._life.gate()
        if isinstance(answer, FarmError):
            raise answer
        return cast(Value, answer)

    async def _travel(self, handle: Callable[[], Awaitable[Value]]) -> Value | FarmError:
        """A request's way to the farm, and its answer's way back; lost ones never arrive."""
        weather, random = self._agent.weather, self._agent.world.random
        await asyncio.sleep(random.uniform(0.2, 1) * weather.delay_s)
        if random.random() < weather.lose_request:
            await asyncio.sleep(CALL_DEADLINE_S * 10)
        if random.random() < weather.stray:
            await asyncio.sleep(random.uniform(5, 200))
        if random.random() < weather.double:
            self._agent.world.spawn(self._again(handle, random.uniform(0, 90)))
        answer = await _said(handle)
        await asyncio.sleep(random.uniform(0.2, 1) * weather.delay_s)
        if random.random() < weather.lose_answer:
            await asyncio.sleep(CALL_DEADLINE_S * 10)
        return answer

    async def _again(self, handle: Callable[[], Awaitable[Value]], later_s: float) -> None:
        await asyncio.sleep(later_s)
        await _said(handle)


async def _said(handle: Callable[[], Awaitable[Value]]) -> Value | FarmError:
    try:
        return await handle()
    except FarmUnreachable as error:
        return error
    except FarmError as error:
        return _as_told(error)


def _as_told(answer: Value | FarmError) -> Value | FarmError:
    """As it comes out of the wire."""
    return error_of(problem_document(answer)) if isinstance(answer, FarmError) else answer


class Disk:
    """Stands where `DiskThread` does: the real files, written where the call is made.

    An agent may be killed before any write and after it.
    """

    def __init__(self, life: "Life") -> None:
        self._life = life

    async def call(self, action: Callable[..., Value], *arguments: Any) -> Value:
        await self._life.may_die()
        result = action(*arguments)
        await self._life.may_die()
        return result


class Life:
    """One process of an agent, from its start until it is killed."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self.is_dead = False
        self.active = ActiveAttempts()
        self._adb = AdbSide(
            host=agent.index,
            phones=agent.world.phones,
            active=self.active,
            clock=agent.world.clock,
            random=agent.world.random,
            gate=self.gate,
            is_calm=lambda: agent.world.is_calm,
        )
        self.spool = Spool(agent.folder / "spool", reserve_bytes=0)
        self.journal = AttemptJournal(agent.folder / "attempts")

    async def gate(self) -> None:
        """Everything that the world could notice passes here: nothing of a dead or stopped process does."""
        while not self._agent.is_running.is_set():
            await self._agent.is_running.wait()
        if self.is_dead:
            raise asyncio.CancelledError

    async def may_die(self) -> None:
        await asyncio.sleep(self._agent.world.random.uniform(0.001, 0.2))
        await self.gate()
        if self._agent.world.random.random() < self._agent.frailty:
            self._agent.kill_soon()
            await asyncio.Event().wait()

    def stir(self, device_id: str) -> None:
        self._adb.stir(device_id)

    async def run(self) -> None:
        world, agent = self._agent.world, self._agent
        network, disk = cast(FarmApi, Network(agent, self)), cast(DiskThread, Disk(self))
        async with asyncio.TaskGroup() as tasks:
            attempts = AttemptController(
                active=self.active,
                runner=cast(AttemptRunner, self._adb),
                # One call at a time, so that reports of two phones often wait together.
                delivery=ReportDelivery(network, self.spool, disk, world.random, at_once=1),
                journal=self.journal,
                spool=self.spool,
                disk=disk,
                random=world.random,
                tasks=tasks,
            )
            lease = LeaseMonitor(
                active=self.active, devices=self._adb.observations, stop=attempts.interrupt, clock=world.clock
            )
            exchange = ExchangeLoop(
                api=network,
                attempts=attempts,
                device_actions=cast(DeviceActionRunner, ModelErrands(self.active, tasks, world.random)),
                active=self.active,
                devices=self._adb.observations,
                reprobe=self._adb.reprobe,
                # No phone of this world is helped back by its agent.
                record_recovery_permission=lambda devices, at_s: None,
                prefetch=lambda digests: None,
                pressure=Backpressure(self.active.changed),
                usb_capacity=UsbCapacity(self.active.changed, lasts_s=3600.0),
                damaged_files=DamagedFiles(agent.folder, self.active.changed),
                lease=lease,
                replay=ReportReplay(attempts, agent.folder, disk),
                # No clock of this world is ever set.
                clock_comparison=ClockComparison(api=network, clock=world.clock),
                clock=world.clock,
                random=world.random,
                boot_id="boot",
                agent_version="simulated",
                adb_address=None,
                ready=lambda: None,
            )
            await attempts.recover()
            for device_id in world.phones:
                tasks.create_task(self._adb.watch(device_id), name=f"watch {device_id}")
            tasks.create_task(exchange.run(), name="exchange")
            tasks.create_task(lease.run(), name="lease")


class ModelErrands:
    """As `agents.upkeep.device_actions`, with device actions that always succeed."""

    def __init__(self, active: ActiveAttempts, tasks: asyncio.TaskGroup, random: Random) -> None:
        self._active, self._tasks, self._random = active, tasks, random
        self._in_progress: set[int] = set()
        self._reports: dict[int, DeviceActionReport] = {}

    def in_progress(self) -> tuple[int, ...]:
        return tuple(sorted(self._in_progress))

    def reports(self) -> tuple[DeviceActionReport, ...]:
        return tuple(self._reports.values())

    def apply(self, reported: Iterable[DeviceActionReport], listed: Iterable[DeviceActionOrder]) -> None:
        listed = list(listed)
        for report in reported:
            if report.device_action_id not in {device_action.device_action_id for device_action in listed}:
                self._reports.pop(report.device_action_id, None)
        for device_action in listed:
            is_new = (
                device_action.device_action_id not in self._in_progress
                and device_action.device_action_id not in self._reports
            )
            if is_new and not self._active.is_busy(device_action.device_id):
                self._in_progress.add(device_action.device_action_id)
                self._active.on_device_action.add(device_action.device_id)
                self._tasks.create_task(self._done(device_action))

    async def _done(self, device_action: DeviceActionOrder) -> None:
        await asyncio.sleep(self._random.uniform(0.5, 20))
        self._reports[device_action.device_action_id] = DeviceActionReport(
            device_action_id=device_action.device_action_id, done="done"
        )
        self._in_progress.discard(device_action.device_action_id)
        self._active.on_device_action.discard(device_action.device_id)
        self._active.changed.set()


@dataclass
class Agent:
    """A host with its folder, life after life."""

    world: World
    index: int
    host_id: HostId
    folder: Path
    weather: Weather = field(default_factory=Weather)
    #: How often it dies at a write to its disk.
    frailty: float = 0.0
    life: Life | None = None
    _task: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self.is_running = asyncio.Event()
        self.is_running.set()

    def start(self) -> None:
        if self.life is None:
            self.life = Life(self)
            self._task = self.world.spawn(self._live(self.life))
            self.world.note(f"{self.host_id} starts")

    async def _live(self, life: Life) -> None:
        try:
            await life.run()
        except asyncio.CancelledError:
            if not life.is_dead:
                raise

    def kill(self) -> None:
        """SIGKILL: what it has not written is gone."""
        if self.life is not None and self._task is not None:
            self.world.note(f"{self.host_id} is killed, holding {sorted(self.life.active.attempt_by_id)}")
            self.life.is_dead = True
            self.life = None
            self._task.cancel()

    def kill_soon(self) -> None:
        self.world.spawn(self._kill_now(self.life))

    async def _kill_now(self, life: Life | None) -> None:
        if self.life is life:
            self.kill()

    def stir(self, device_id: str) -> None:
        if self.life is not None:
            self.life.stir(device_id)
