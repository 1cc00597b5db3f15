"""Run attempts on devices, from plan to evidence, and clean the devices up afterwards."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

import structlog

from agents.attempts.artifact_cache import ArtifactCache, ArtifactLost
from agents.attempts.completion import AWAY_S, WAIT_MARGIN_S, RunCompletion
from agents.attempts.diagnostic_pass import mark_passes_interrupted, run_passes, should_run_passes
from agents.attempts.preparation import DevicePreparation
from agents.device.conditions import cached_command, read_condition, read_rails, state_by_digest
from agents.device.paths import cache_path, run_folder
from agents.device.run.cpu_affinity import cores_of_controls, requested_affinity, select_cores
from agents.device.run.gates import WaitCallback, ignore_wait
from agents.device.run.run_control import (
    SUPERVISOR_FILE,
    DeviceNotClean,
    RunStatus,
    clean_run,
    run_status,
    start_run,
)
from agents.devices.monitor import DeviceMonitor, OnlineDevice
from agents.host.retry import Backoff, TransportRetry
from agents.outbox.attempt_journal import AttemptPhase, JournalRecord
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.devices.condition import closed_gates
from farm.core.errors import (
    AdbServerDown,
    DeviceLost,
    DeviceRebooted,
    FarmError,
    FarmFault,
    HostDiskFull,
    HostError,
)
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence, RunError
from farm.core.runs.plan import fill_argv, fill_env

log = structlog.get_logger(__name__)

Value = TypeVar("Value")
PhaseCallback = Callable[[AttemptPhase, Evidence], Awaitable[None]]

#: Errors before the start of a run that defer it.
DEFERRING_ERRORS = (FarmFault, ArtifactLost, AdbServerDown, HostDiskFull)
#: How long starting a run may be retried while the device is unreachable; its last condition is stale after
#: that.
START_AWAY_S = 20.0
#: Time that the screen stays on after a run, in case another one follows.
KEEP_AWAKE_S = 10.0
#: Consecutive failed clean-ups after which the device is reported unclean; retries continue.
#: Fewer say little: a device may be busy writing.
REPORT_UNCLEAN_AFTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredRun:
    """The outcome of a run that did not begin and may succeed later."""

    reason: str


@dataclass(eq=False, kw_only=True)
class AttemptRunner:
    """Runs plans on the devices of this host; any number at once, one per device."""

    monitor: DeviceMonitor
    artifacts: ArtifactCache
    clock: Clock
    random: Random
    device_cache_limit_bytes: int
    max_pushes: int | None = None
    wait_margin_s: float = WAIT_MARGIN_S
    keep_awake_s: float = KEEP_AWAKE_S
    away_s: float = AWAY_S

    def __post_init__(self) -> None:
        self._preparation = DevicePreparation(
            artifacts=self.artifacts,
            clock=self.clock,
            random=self.random,
            device_cache_limit_bytes=self.device_cache_limit_bytes,
            max_pushes=self.max_pushes,
        )
        self._retry = TransportRetry(self.clock, self.random)
        self._completion = RunCompletion(
            clock=self.clock, retry=self._retry, wait_margin_s=self.wait_margin_s, away_s=self.away_s
        )

    async def run(
        self, record: JournalRecord, advance: PhaseCallback, adopt: bool, tell: WaitCallback = ignore_wait
    ) -> Evidence | DeferredRun:
        """Run the plan, or adopt a run of an earlier agent process.

        Return its evidence, or `DeferredRun` if it did not start and may succeed later. Errors become
        evidence, except `DEFERRING_ERRORS` before the start. Nothing of a phase happens on the device
        before `advance` has recorded it. `adopt`: the journal says `measuring`: an earlier agent process
        started the run, or was about to. `tell` is called with what the run waits for before it begins.
        """
        draft = replace(record.draft, adopted=adopt)
        record = replace(record, draft=draft)

        async def remember(phase: AttemptPhase, so_far: Evidence) -> None:
            nonlocal draft
            await advance(phase, so_far)
            draft = so_far

        try:
            if adopt:
                return await self._adopt(record, remember)
            return await self._run(record, remember, tell)
        except FarmError as error:
            if (device := self.monitor.find(record.device_id)) is not None:
                device.state_cache.forget()
            if isinstance(error, DEFERRING_ERRORS) and draft.started_at is None:
                return DeferredRun(reason=error.message)
            return self.failed_evidence(draft, error)
        except Exception as error:
            log.exception("attempt_crashed")
            return self.failed_evidence(draft, HostError(f"the agent failed: {error!r}"))

    def failed_evidence(self, draft: Evidence, error: FarmError) -> Evidence:
        """Return the evidence of a run that an error stopped; of one that has ended only a pass is lost."""
        is_over = draft.exit is not None
        return draft if is_over else replace(draft, error=RunError.of(error), finished_at=self.clock.now())

    async def clean_up(self, device_id: DeviceId, fence: int, *, stay_awake: bool = False) -> None:
        """End and remove everything of runs up to `fence`; retry until the device is clean.

        Every attempt ends here, so the screen is restored here, too. With `stay_awake` it stays on, the
        clean-up also reads the preflight of the next run, and the caller must call `keep_ready` afterwards,
        which restores the screen if no run comes.
        """
        backoff, unclean_count = Backoff(self.random, cap_s=60.0), 0
        while True:
            device = await self.monitor.wait(device_id)
            try:
                checked = SUPERVISOR_FILE.digest in device.state_cache.verified_by_digest
                then = cached_command(device.adb.work_root) if stay_awake else ""
                result = await clean_run(device.adb, fence, checked=checked, then=then)
                if stay_awake:
                    device.state_cache.record_cleaned(state_by_digest(result.text))
                if not (stay_awake and device.state_cache.is_awake):
                    await self._preparation.restore_screen(device)
            except FarmError as error:
                log.warning(
                    "clean_failed", device_id=device_id, fence=fence, code=error.code, reason=error.message
                )
                unclean_count = unclean_count + 1 if isinstance(error, DeviceNotClean) else 0
                if unclean_count >= REPORT_UNCLEAN_AFTER:
                    self.monitor.active.record_unclean(device_id, f"it cannot be cleaned up: {error.message}")
            except Exception:
                log.exception("clean_crashed", device_id=device_id, fence=fence)
            else:
                return
            device.state_cache.forget()
            self.monitor.reprobe(device_id)
            await asyncio.sleep(backoff.next_s())

    async def keep_ready(self, device_id: DeviceId, is_free: Callable[[], bool]) -> None:
        """Take a preflight of a device that became free; restore its screen when no run comes."""
        if (device := self.monitor.find(device_id)) is None:
            return
        try:
            await self._preparation.preflight_next(device, is_free)
            await asyncio.sleep(self.keep_awake_s)
            if is_free():
                await self._preparation.restore_screen(device)
        except FarmError as error:
            # The next probe of the device finds the cause, and its clean-up restores the screen.
            log.debug("keep_ready_failed", device_id=device_id, code=error.code, reason=error.message)

    async def _run(
        self, record: JournalRecord, advance: PhaseCallback, tell: WaitCallback
    ) -> Evidence | DeferredRun:
        device = self.monitor.find(record.device_id)
        if device is None:
            return DeferredRun(reason="the device went away before the run could begin")
        plan = record.plan
        if (prepared := self._preparation.find_prepared(device, plan, record.fence)) is None:
            await advance(AttemptState.PREPARING, record.draft)
            prepared = await self._preparation.prepare(device, plan, record.fence, tell)
        if prepared.unmet:
            return DeferredRun(reason="; ".join(prepared.unmet))
        cores = select_cores(device.adb.serial, plan.controls, device.facts.clusters, prepared.condition)
        work, paths = run_folder(device.adb.work_root, record.fence), prepared.path_by_name
        rails = await read_rails(device.adb) if plan.reads_rails else ""
        draft = replace(
            record.draft,
            rails_before=rails,
            argv=_fill_placeholders(lambda: tuple(fill_argv(plan, work=work, path_by_name=paths))),
            before=prepared.condition,
            pushed_bytes=prepared.pushed_bytes,
            waited_s=prepared.waited_s,
            started_at=self.clock.now(),
            controls=(*prepared.controls, *([requested_affinity(cores)] if cores else [])),
        )
        env = _fill_placeholders(lambda: fill_env(plan, work=work, path_by_name=paths))
        record = replace(record, draft=draft)
        await advance(AttemptState.MEASURING, record.draft)
        await self._start(record, device, env)
        ended = await self._completion.complete(record, device)
        return await self._run_passes(record, device, ended, advance)

    async def _run_passes(
        self, record: JournalRecord, device: OnlineDevice, evidence: Evidence, advance: PhaseCallback
    ) -> Evidence:
        """Run the plan's uncounted passes, once the run's own evidence is on disk."""
        if not should_run_passes(record, evidence):
            return evidence
        try:
            await advance(AttemptState.MEASURING, evidence)
        except HostDiskFull as error:
            log.warning("passes_skipped", reason=error.message, hint=error.hint)
            return evidence
        return await run_passes(record, device, evidence)

    async def _adopt(self, record: JournalRecord, advance: PhaseCallback) -> Evidence:
        if record.draft.exit is not None:
            return mark_passes_interrupted(record, record.draft)
        try:
            async with asyncio.timeout(self.away_s):
                device = await self.monitor.wait(record.device_id)
        except TimeoutError as error:
            raise DeviceLost(f"{record.device_id} did not come back within {self.away_s:g} s") from error
        adb = device.adb
        status = await self._retry.call(lambda: run_status(adb, record.fence), away_s=self.away_s)
        if status is RunStatus.UNKNOWN:
            await self._start_recorded(record, device)
        ended = await self._completion.complete(record, device)
        return await self._run_passes(record, device, ended, advance)

    async def _start_recorded(self, record: JournalRecord, device: OnlineDevice) -> None:
        """Start a run that an earlier process had recorded, and of which the device has nothing.

        Starting is idempotent: a run that has started in between is left as it is.
        """
        before, plan, work_root = record.draft.before, record.plan, device.adb.work_root
        if before is None or before.boot_id is None:
            raise HostError(f"the agent was restarted before it checked the device of run {record.fence}")
        if before.boot_id != device.boot_id:
            raise DeviceRebooted(f"{device.adb.serial} restarted during run {record.fence}")
        condition = await read_condition(device.adb, self.clock.now())
        if shut := closed_gates(condition, plan.gates, plan.controls):
            message = f"the agent restarted before run {record.fence} began, and it cannot begin now"
            raise HostError(f"{message}: {'; '.join(shut)}")
        paths = {file.name: cache_path(work_root, file.digest) for file in plan.files}
        work = run_folder(work_root, record.fence)
        env = _fill_placeholders(lambda: fill_env(plan, work=work, path_by_name=paths))
        await self._start(record, device, env)

    async def _start(self, record: JournalRecord, device: OnlineDevice, env: Mapping[str, str]) -> None:
        # Starting is idempotent: a run whose start was not acknowledged is left running.
        async def start() -> None:
            checked = SUPERVISOR_FILE.digest in device.state_cache.verified_by_digest
            try:
                await start_run(
                    device.adb,
                    record.fence,
                    record.draft.argv,
                    env,
                    record.plan.timeout_s,
                    record.plan.files,
                    cores=cores_of_controls(record.draft.controls),
                    sampling=record.plan.sampling,
                    checked=checked,
                )
            except FarmError:
                # The device may have been away before the retry.
                device.state_cache.forget()
                raise

        await self._retry.call(start, away_s=START_AWAY_S)


def _fill_placeholders(fill: Callable[[], Value]) -> Value:
    try:
        return fill()
    except (KeyError, ValueError) as error:
        raise FarmError(f"the plan has a placeholder without a value: {error}") from error
