"""One attempt, from its plan to its evidence."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

import structlog

from agents.attempts.artifact_cache import BlobCache
from agents.attempts.completion import AWAY_S, WAIT_MARGIN_S, Ending
from agents.attempts.diagnostic_pass import cut_off, wants_passes, with_passes
from agents.attempts.preparation import Preparation
from agents.device.paths import cache_path, run_folder
from agents.device.run.cpu_affinity import asked_cores, cores_to_bind, run_cores
from agents.device.run.gates import Tell, untold
from agents.device.run.run_control import RunStatus, clean_run, run_status, start_run
from agents.device.run.supervisor import PhoneNotClean, supervisor_file
from agents.device.state.conditions import read_condition
from agents.device.state.preflight import cached_command, state_by_digest
from agents.devices.monitor import Phone, PhoneWatch
from agents.host.backoff import Backoff
from agents.host.retry import Patience
from agents.outbox.journal import Entry, Phase
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.devices.condition import closed_gates
from farm.core.errors import (
    AdbServerDown,
    DeviceLost,
    DeviceRebooted,
    FarmError,
    FarmTrouble,
    HostDiskFull,
    HostError,
)
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence, Trouble
from farm.core.runs.plan import filled_argv, filled_env

log = structlog.get_logger(__name__)

Value = TypeVar("Value")
Advance = Callable[[Phase, Evidence], Awaitable[None]]

#: What keeps a run from being started that would do as well later.
NOT_ITS_DOING = (FarmTrouble, AdbServerDown, HostDiskFull)
#: As long as the gates' last look is worth anything.
START_AWAY_S = 20.0
#: How long a phone's screen stays on for a next run.
STAND_BY_S = 10.0
#: So often in a row something of a run must live on before anybody is called: a phone may be busy writing.
UNCLEAN_TIMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """Nothing ran, and the job may well run later."""

    reason: str


class Runner:
    """Carries out plans on the phones of this host; any number at once, one for each phone."""

    def __init__(
        self,
        *,
        phones: PhoneWatch,
        blobs: BlobCache,
        clock: Clock,
        random: Random,
        phone_cache_limit_bytes: int,
        max_pushes: int | None = None,
        wait_margin_s: float = WAIT_MARGIN_S,
        stand_by_s: float = STAND_BY_S,
        away_s: float = AWAY_S,
    ) -> None:
        self._phones = phones
        self._preparation = Preparation(
            blobs=blobs,
            clock=clock,
            random=random,
            phone_cache_limit_bytes=phone_cache_limit_bytes,
            max_pushes=max_pushes,
        )
        self._patience = Patience(clock, random)
        self._ending = Ending(
            clock=clock, patience=self._patience, wait_margin_s=wait_margin_s, away_s=away_s
        )
        self._away_s = away_s
        self._stand_by_s = stand_by_s
        self._clock = clock
        self._random = random

    async def run(
        self, entry: Entry, advance: Advance, adopt: bool, tell: Tell = untold
    ) -> Evidence | PutOff:
        """Carry the plan out, or take over a run of an earlier life; errors become evidence.

        Args:
            entry: the attempt as the journal has it.
            advance: records a phase; nothing of it happens on the phone before that returned.
            adopt: the run was started before this process was.
            tell: hears what the run waits for before it begins.
        """
        draft = replace(entry.draft, adopted=adopt)

        async def remember(phase: Phase, so_far: Evidence) -> None:
            nonlocal draft
            await advance(phase, so_far)
            draft = so_far

        try:
            if adopt:
                return await self._adopted(entry, draft, remember)
            return await self._run(entry, remember, tell)
        except FarmError as error:
            self._doubt_memory(entry.device_id)
            if isinstance(error, NOT_ITS_DOING) and draft.started_at is None:
                return PutOff(reason=error.message)
            return self._troubled(draft, error)
        except Exception as error:
            log.exception("attempt_crashed")
            return self._troubled(draft, HostError(f"the agent failed: {error!r}"))

    def cut_short(self, entry: Entry, error: FarmError) -> Evidence:
        """What is reported of a run that is stopped before its end."""
        return self._troubled(entry.draft, error)

    async def clear(self, device_id: DeviceId, fence: int, *, stay_awake: bool = False) -> None:
        """End and remove everything of runs up to `fence` on the phone, as soon as it can be reached.

        However an attempt ends, or is left by an earlier life, it comes here: so the screen is put back here,
        unless it is to stay awake for the next run. Whoever asks for that calls `stand_by` afterwards; what
        such a run has to know of the phone comes with the clean-up.
        """
        backoff, withstood = Backoff(self._random, cap_s=60.0), 0
        while True:
            phone = await self._phones.wait(device_id)
            try:
                checked = supervisor_file().digest in phone.memory.verified_by_digest
                then = cached_command(phone.facts.work_root) if stay_awake else ""
                said = await clean_run(phone.device, phone.facts.work_root, fence, checked=checked, then=then)
                if stay_awake:
                    phone.memory.note_cleaned(state_by_digest(said.stdout.decode(errors="replace")))
                if not (stay_awake and phone.memory.is_awake):
                    await self._preparation.let_sleep(phone)
            except FarmError as error:
                log.warning(
                    "clean_failed", device_id=device_id, fence=fence, code=error.code, reason=error.message
                )
                withstood = withstood + 1 if isinstance(error, PhoneNotClean) else 0
                if withstood >= UNCLEAN_TIMES:
                    self._phones.note_unclean(device_id, f"it cannot be cleaned up: {error.message}")
            except Exception:
                log.exception("clean_crashed", device_id=device_id, fence=fence)
            else:
                return
            phone.memory.forget()
            self._phones.doubt(device_id)
            await asyncio.sleep(backoff.next_s())

    async def stand_by(self, device_id: DeviceId, is_free: Callable[[], bool]) -> None:
        """Have a look at a phone that has just become free; let it sleep when nothing comes for a while."""
        if (phone := self._phones.find(device_id)) is None:
            return
        try:
            await self._preparation.look_ahead(phone, is_free)
            await asyncio.sleep(self._stand_by_s)
            if is_free():
                await self._preparation.let_sleep(phone)
        except FarmError as error:
            # The next look at the phone finds out what is wrong, and whoever cleans up lets it sleep.
            log.debug("stand_by_failed", device_id=device_id, code=error.code, reason=error.message)

    async def _run(self, entry: Entry, advance: Advance, tell: Tell) -> Evidence | PutOff:
        phone = self._phones.find(entry.device_id)
        if phone is None:
            return PutOff(reason="the phone went away before the run could begin")
        plan = entry.plan
        if (ready := self._preparation.find_ready(phone, plan, entry.fence)) is None:
            await advance(AttemptState.PREPARING, entry.draft)
            ready = await self._preparation.prepare(phone, plan, entry.fence, tell)
        if ready.shut:
            return PutOff(reason="; ".join(ready.shut))
        cores = run_cores(phone.device.serial, plan.controls, phone.facts.clusters, ready.condition)
        work = run_folder(phone.facts.work_root, entry.fence)
        draft = replace(
            entry.draft,
            argv=_filled(lambda: tuple(filled_argv(plan, work=work, path_by_name=ready.path_by_name))),
            before=ready.condition,
            pushed_bytes=ready.pushed_bytes,
            waited_s=ready.waited_s,
            started_at=self._clock.now(),
            controls=(*ready.controls, *([asked_cores(cores)] if cores else [])),
        )
        env = _filled(lambda: filled_env(plan, work=work, path_by_name=ready.path_by_name))
        await advance(AttemptState.MEASURING, draft)
        await self._start(replace(entry, draft=draft), phone, env)
        ended = await self._ending.finished(entry, phone, draft)
        return await self._explained(entry, phone, ended, advance)

    async def _explained(self, entry: Entry, phone: Phone, evidence: Evidence, advance: Advance) -> Evidence:
        """With the plan's uncounted passes, once the run's own evidence is on disk."""
        if not wants_passes(entry, evidence):
            return evidence
        try:
            await advance(AttemptState.MEASURING, evidence)
        except HostDiskFull as error:
            log.warning("passes_left_out", reason=error.message, hint=error.hint)
            return evidence
        return await with_passes(entry, phone, evidence)

    async def _adopted(self, entry: Entry, draft: Evidence, advance: Advance) -> Evidence:
        if draft.exit is not None:
            return cut_off(entry, draft)
        try:
            async with asyncio.timeout(self._away_s):
                phone = await self._phones.wait(entry.device_id)
        except TimeoutError as error:
            raise DeviceLost(f"{entry.device_id} did not come back within {self._away_s:g} s") from error

        async def look() -> RunStatus:
            return await run_status(phone.device, phone.facts.work_root, entry.fence)

        if await self._patience.call(look, away_s=self._away_s) is RunStatus.UNKNOWN:
            await self._start_late(entry, phone)
        ended = await self._ending.finished(entry, phone, draft)
        return await self._explained(entry, phone, ended, advance)

    async def _start_late(self, entry: Entry, phone: Phone) -> None:
        """Start a run that an earlier life had only just noted; one that it did start is left as it is."""
        before, plan, work_root = entry.draft.before, entry.plan, phone.facts.work_root
        if before is None or before.boot_id is None or before.boot_id != phone.boot_id:
            raise _lost_run(entry, phone)
        condition = await read_condition(phone.device, work_root, self._clock.now())
        if shut := closed_gates(condition, plan.gates, plan.controls):
            raise HostError(f"run {entry.fence} was not started in time: {'; '.join(shut)}")
        paths = {file.name: cache_path(work_root, file.digest) for file in plan.files}
        work = run_folder(work_root, entry.fence)
        env = _filled(lambda: filled_env(plan, work=work, path_by_name=paths))
        await self._start(entry, phone, env)

    async def _start(self, entry: Entry, phone: Phone, env: Mapping[str, str]) -> None:
        # Starting is idempotent: what an answer that was lost had started is left as it is.
        async def start() -> None:
            argv, plan, work_root = entry.draft.argv, entry.plan, phone.facts.work_root
            checked = supervisor_file().digest in phone.memory.verified_by_digest
            try:
                await start_run(
                    phone.device,
                    work_root,
                    entry.fence,
                    argv,
                    env,
                    plan.timeout_s,
                    plan.files,
                    cores=cores_to_bind(entry.draft.controls),
                    checked=checked,
                )
            except FarmError:
                # By the time this is tried again the phone may have been away.
                phone.memory.forget()
                raise

        await self._patience.call(start, away_s=START_AWAY_S)

    def _doubt_memory(self, device_id: DeviceId) -> None:
        if (phone := self._phones.find(device_id)) is not None:
            phone.memory.forget()

    def _troubled(self, draft: Evidence, error: FarmError) -> Evidence:
        if draft.exit is not None:
            # The run itself had ended well: only a pass is lost.
            return draft
        trouble = Trouble(
            code=error.code,
            blame=error.blame,
            transient=error.transient,
            message=error.message,
            hint=error.hint,
        )
        return replace(draft, trouble=trouble, finished_at=self._clock.now())


def _lost_run(entry: Entry, phone: Phone) -> FarmError:
    """Who is to blame for a run of an earlier life that the phone knows nothing of."""
    before = entry.draft.before
    if before is not None and before.boot_id is not None and before.boot_id != phone.boot_id:
        return DeviceRebooted(f"{phone.device.serial} restarted during run {entry.fence}")
    return HostError(f"the agent was restarted before it looked at the phone of run {entry.fence}")


def _filled(fill: Callable[[], Value]) -> Value:
    try:
        return fill()
    except (KeyError, ValueError) as error:
        raise FarmError(f"the plan has a placeholder that nothing fills: {error}") from error
