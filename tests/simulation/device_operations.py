"""What an agent does to phones by adb, played on model phones.

Follows `agents.devices.monitor`, `agents.devices.monitor` and `agents.attempts.runner` step by step,
without files, gates and adb itself. The simulation would not notice a mistake of theirs; it is there for
what farm and agent agree on.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from agents.attempts.completion import AWAY_S
from agents.attempts.runner import DeferredRun, PhaseCallback, WaitCallback, ignore_wait
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.inventory import TransportObservation
from agents.host.retry import TransportRetry
from agents.outbox.attempt_journal import JournalRecord
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.errors import Blame, DeviceError, DeviceLost, DeviceRebooted, FarmError, HostError
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence, RunError
from farm.wire.agents.protocol import Assignment
from tests.simulation.simulated_devices import ModelPhone
from tests.support.farm.service_fixture import device_trouble, ended, good_evidence, torch_output

_SHORT = [1000.0] * 4
#: How a run ends, mostly well.
_ENDS = ("good",) * 12 + ("short", "crash", "nothing", "device")
LOOK_S = 60.0

Gate = Callable[[], "asyncio.Future[None] | object"]


class AdbSide:
    """One life's view of the phones of its host."""

    def __init__(
        self,
        *,
        host: int,
        phones: Mapping[str, ModelPhone],
        active: ActiveAttempts,
        clock: Clock,
        random: Random,
        gate: Callable[[], "object"],
        is_calm: Callable[[], bool],
    ) -> None:
        self._host = host
        self._phones = phones
        self._active = active
        self._clock = clock
        self._random = random
        self._gate = gate
        self._is_calm = is_calm
        self._patience = TransportRetry(clock, random)
        self._seen: dict[DeviceId, TransportObservation] = {}
        self._arrival = asyncio.Event()
        self._stirred = {DeviceId(name): asyncio.Event() for name in phones}

    # The watch.

    def observations(self) -> dict[DeviceId, TransportObservation]:
        return dict(self._seen)

    def reprobe(self, device_id: DeviceId) -> None:
        self._stirred[device_id].set()

    def stir(self, device_id: str) -> None:
        """adb's listing changed."""
        identity = DeviceId(device_id)
        if self._host in self._phones[device_id].links:
            self._see(identity, Presence.OFFLINE)
        elif self._seen.pop(identity, None) is not None:
            self._tell()
        self._stirred[identity].set()

    async def watch(self, device_id: str) -> None:
        identity = DeviceId(device_id)
        self.stir(device_id)
        while True:
            self._stirred[identity].clear()
            phone = self._phones[device_id]
            if self._host in phone.links:
                await self._look(identity, phone)
            try:
                async with asyncio.timeout(
                    self._random.uniform(1, 5) if self._doubtful(identity) else LOOK_S
                ):
                    await self._stirred[identity].wait()
            except TimeoutError:
                pass
            await asyncio.sleep(1.0)

    def _doubtful(self, identity: DeviceId) -> bool:
        seen = self._seen.get(identity)
        return seen is not None and seen.presence is not Presence.ONLINE

    async def _look(self, identity: DeviceId, phone: ModelPhone) -> None:
        """Probe, then clean up what no active attempt has; as `DeviceReadiness`."""
        try:
            await self._ask(phone)
            if identity not in self._active.measuring():
                await self._clean_left(identity, phone)
            await self._ask(phone)
        except DeviceError:
            if self._host in phone.links:
                self._see(identity, Presence.OFFLINE)
            return
        self._see(identity, Presence.ONLINE)

    async def _clean_left(self, identity: DeviceId, phone: ModelPhone) -> None:
        if self._active.holds(identity):
            return
        known = max(phone.fence, phone.cleaned)
        wanted = self._active.fence_to_clean_by_device.get(identity, 0)
        self._active.record_fence(identity, known)
        fence = max(known, wanted)
        run = phone.runs.get(fence)
        if fence > wanted and run is not None and run.is_alive(phone, self._clock.monotonic()):
            fence -= 1
        if fence > 0:
            await self._ask(phone)
            phone.clean(fence)
        self._active.record_cleaned(identity, fence)

    def _see(self, identity: DeviceId, presence: Presence) -> None:
        phone = self._phones[identity]
        before = self._seen.get(identity)
        self._seen[identity] = TransportObservation(
            serial=f"{identity}:5555" if phone.tcp else identity,
            presence=presence,
            facts=phone.facts if presence is Presence.ONLINE else before and before.facts,
            boot_id=phone.boot_id,
            mark=identity,
        )
        if before is None or before.presence is not presence:
            self._tell()

    def _tell(self) -> None:
        self._active.changed.set()
        self._arrival.set()
        self._arrival = asyncio.Event()

    async def _ask(self, phone: ModelPhone) -> None:
        """One exchange of words with a phone, which may go away before, in and after it."""
        phone.reach(self._host, self._clock.monotonic())
        await asyncio.sleep(self._random.uniform(0.02, 0.5))
        await self._gate()
        phone.reach(self._host, self._clock.monotonic())

    def _find(self, identity: DeviceId) -> ModelPhone | None:
        seen = self._seen.get(identity)
        return self._phones[identity] if seen and seen.presence is Presence.ONLINE else None

    async def _wait(self, identity: DeviceId) -> ModelPhone:
        while (phone := self._find(identity)) is None:
            await self._arrival.wait()
        await self._gate()
        return phone

    # The runner.

    async def run(
        self, entry: JournalRecord, advance: PhaseCallback, adopt: bool, tell: WaitCallback = ignore_wait
    ) -> Evidence | DeferredRun:
        draft = replace(entry.draft, adopted=adopt)
        try:
            if not adopt:
                phone = self._find(entry.device_id)
                if phone is None:
                    return DeferredRun(reason="the device went away before the run could begin")
                if self._random.random() < 0.8:
                    await advance(AttemptState.PREPARING, entry.draft)
                    tell("the phone cools down")
                    await asyncio.sleep(self._random.uniform(0.1, 5))
                    tell(None)
                    await self._ask(phone)
                if not self._is_calm() and self._random.random() < 0.05:
                    return DeferredRun(reason="the battery is low")
                draft = replace(entry.draft, argv=(phone.boot_id,), started_at=self._clock.now())
                await advance(AttemptState.MEASURING, draft)
                await self._start(entry, phone)
            else:
                phone = await self._adopted(entry, draft)
            return await self._finished(entry, phone, draft)
        except FarmError as error:
            return self.failed_evidence(draft, error)

    async def _adopted(self, entry: JournalRecord, draft: Evidence) -> ModelPhone:
        try:
            async with asyncio.timeout(AWAY_S):
                phone = await self._wait(entry.device_id)
        except TimeoutError as error:
            raise DeviceLost(f"{entry.device_id} did not come back") from error
        if entry.fence not in phone.runs:
            if draft.argv != (phone.boot_id,):
                raise DeviceRebooted("it restarted during the run")
            if self._random.random() < 0.2:
                raise HostError("it was not started in time")
            await self._start(entry, phone)
        return phone

    async def _start(self, entry: JournalRecord, phone: ModelPhone) -> None:
        async def start() -> None:
            await self._ask(phone)
            duration_s = self._random.choice([1.0, 5.0, 20.0, 60.0])
            phone.start(entry.fence, self._clock.monotonic(), duration_s)
            await self._ask(phone)

        await self._patience.call(start, away_s=20.0)

    async def _finished(self, entry: JournalRecord, phone: ModelPhone, draft: Evidence) -> Evidence:
        async def ended_there() -> None:
            while True:
                await self._ask(phone)
                run, now_s = phone.runs.get(entry.fence), self._clock.monotonic()
                if run is None:
                    raise HostError(f"nothing is known of run {entry.fence}")
                if run.boot != phone.boot and not (run.ends_s < now_s and not run.killed):
                    raise DeviceRebooted("it restarted during the run")
                if not run.is_alive(phone, now_s):
                    return
                await asyncio.sleep(max(run.ends_s - now_s, 0.1))

        await self._patience.call(ended_there, away_s=AWAY_S)
        await self._patience.call(lambda: self._ask(phone), away_s=AWAY_S)
        kind = "good" if self._is_calm() else self._random.choice(_ENDS)
        printed = evidence_of(kind, entry)
        return replace(draft, exit=printed.exit, stdout=printed.stdout, error=printed.error)

    def failed_evidence(self, draft: Evidence, error: FarmError) -> Evidence:
        return replace(draft, error=RunError.of(error))

    async def clean_up(self, device_id: DeviceId, fence: int, *, stay_awake: bool = False) -> None:
        while True:
            phone = await self._wait(device_id)
            try:
                await self._ask(phone)
                phone.clean(fence)
                await self._ask(phone)
            except FarmError:
                self.reprobe(device_id)
                await asyncio.sleep(self._random.uniform(1, 10))
            else:
                return

    async def keep_ready(self, device_id: DeviceId, is_free: Callable[[], bool]) -> None:
        """Nothing to let sleep."""


def evidence_of(kind: str, entry: JournalRecord) -> Evidence:
    """What a run that ended in some way leaves; a good one's figure tells which attempt it was."""
    assignment = Assignment(
        attempt_id=entry.attempt_id,
        job_id=entry.job_id,
        device_id=entry.device_id,
        fence=entry.fence,
        plan=entry.plan,
    )
    if kind == "good":
        return good_evidence(assignment, sample_us=figure_us(entry.attempt_id))
    if kind == "device":
        return device_trouble(assignment, Blame.DEVICE)
    if kind == "short" and entry.plan.harness != "device_check":
        return ended(assignment, torch_output(_SHORT))
    return ended(assignment, "", code=134 if kind == "crash" else 0)


def figure_us(attempt_id: int) -> float:
    """The microseconds that a good run of an attempt prints."""
    return 1000.0 + attempt_id
