"""The preparation of a device for a run: files verified, screen set, gates open."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from shlex import quote

import structlog

from agents.attempts.artifact_cache import ArtifactCache
from agents.device.cleanup import evict_files
from agents.device.conditions import Preflight, read_preflight
from agents.device.control.controls import restore_controls, set_controls
from agents.device.device_cache import (
    SHELL_DEADLINE_S,
    CacheResult,
    LocalCopyCorrupted,
    ensure_cached,
    touch_used,
)
from agents.device.paths import cache_folder, cache_path
from agents.device.run.gates import (
    WaitCallback,
    ignore_wait,
    keep_device_awake,
    restore_screen_state,
    wait_for_gates,
)
from agents.device.run.run_control import SUPERVISOR_FILE, ensure_supervisor
from agents.devices.monitor import OnlineDevice
from agents.host.retry import TransportRetry
from farm.clock import Clock
from farm.core.base.ids import Digest
from farm.core.devices.condition import Condition, closed_gates
from farm.core.devices.controls import (
    Controls,
    ControlState,
    CoreKind,
    Screen,
    control_deviations,
    missing_controls,
)
from farm.core.devices.screen_state import screen_controls
from farm.core.errors import ControlImpossible, FarmFault
from farm.core.runs.plan import PlanFile, RunPlan

log = structlog.get_logger(__name__)

GATE_INTERVAL_S = 5.0
_ALL_OF_THEM = '"$@"'
#: Time to wait for an unreachable farm before a job that needs its files is deferred.
FARM_AWAY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDevice:
    """The state of a device before a run."""

    path_by_name: dict[str, str]
    pushed_bytes: int
    #: The last condition before the run.
    condition: Condition
    waited_s: float
    #: Reason to defer the run, as text; empty when the device is fit.
    unmet: tuple[str, ...]
    #: The controls set for this run, except its CPU affinity.
    controls: tuple[ControlState, ...] = ()


@dataclass(eq=False, kw_only=True)
class DevicePreparation:
    """Prepares devices with as few adb calls as possible: one where all that is needed is known."""

    artifacts: ArtifactCache
    clock: Clock
    random: Random
    device_cache_limit_bytes: int
    max_pushes: int | None = None

    def __post_init__(self) -> None:
        # In memory only: its waiters end with the process, too.
        self._pushing = nullcontext() if self.max_pushes is None else asyncio.Semaphore(self.max_pushes)
        self._retry = TransportRetry(self.clock, self.random)

    async def prepare(
        self, device: OnlineDevice, plan: RunPlan, fence: int, tell: WaitCallback = ignore_wait
    ) -> PreparedDevice:
        """Prepare everything that a run needs; wait for its gates.

        Raises:
            FarmError: as `ensure_cached` does, or the farm does not give out a file.
        """
        await self._keep_awake(device, plan.controls)
        async with device.state_cache.preflight_lock:
            preflight = device.state_cache.take_preflight(self.clock.monotonic())
            preflight = preflight or await self._read_preflight(device)
        pushed_bytes, is_fit = 0, not closed_gates(preflight.condition, plan.gates, plan.controls)
        if not self._has_all_files(device, plan, preflight):
            async with self._pushing:
                pushed_bytes, is_fit = await self._ensure_files(device, plan, fence), False
        if _needs_waking(preflight.condition, plan.controls):
            # A button was pressed since, settings were changed, or its full disk took no record.
            await self._keep_awake(device, plan.controls, again=True)
        if is_fit:
            return await self._apply_controls(
                device, plan, fence, _prepared_device(device, plan, fence, preflight.condition)
            )
        device.state_cache.record_use(plan.files, fence)
        ready = await wait_for_gates(
            device.adb,
            plan.gates,
            clock=self.clock,
            interval_s=GATE_INTERVAL_S,
            tell=tell,
            controls=plan.controls,
        )
        prepared = replace(
            _prepared_device(device, plan, fence, ready.condition),
            pushed_bytes=pushed_bytes,
            waited_s=ready.waited_s,
            unmet=ready.shut,
        )
        return prepared if prepared.unmet else await self._apply_controls(device, plan, fence, prepared)

    def find_prepared(self, device: OnlineDevice, plan: RunPlan, fence: int) -> PreparedDevice | None:
        """Return a device that is known to be ready; None where it must be asked, or files are missing."""
        state_cache = device.state_cache
        preflight = state_cache.find_preflight(self.clock.monotonic())
        if (
            preflight is None
            or state_cache.preflight_lock.locked()
            or state_cache.lasting_controls != _lasting_controls(plan.controls)
            or plan.controls.needs_root
            or closed_gates(preflight.condition, plan.gates, plan.controls)
            or not self._has_all_files(device, plan, preflight)
        ):
            return None
        state_cache.take_preflight(self.clock.monotonic())
        return _prepared_device(device, plan, fence, preflight.condition)

    async def preflight_next(self, device: OnlineDevice, is_free: Callable[[], bool]) -> None:
        """Take a preflight of a device that has just become free, for the next run.

        A run that starts during that time waits for it. Nothing is done where a run was quicker, or the
        clean-up has already reported the state.
        """
        async with device.state_cache.preflight_lock:
            if is_free() and device.state_cache.find_preflight(self.clock.monotonic()) is None:
                device.state_cache.store_preflight(await self._read_preflight(device), self.clock.monotonic())

    async def restore_screen(self, device: OnlineDevice) -> None:
        """Restore the screen to its previous state."""
        async with device.state_cache.screen:
            device.state_cache.lasting_controls = None
            await restore_screen_state(device.adb)

    async def _keep_awake(self, device: OnlineDevice, controls: Controls, *, again: bool = False) -> None:
        async with device.state_cache.screen:
            if again or device.state_cache.lasting_controls != _lasting_controls(controls):
                if device.state_cache.is_awake and not again:
                    await restore_screen_state(device.adb)
                device.state_cache.screen_found = await keep_device_awake(device.adb, controls)
                device.state_cache.lasting_controls = _lasting_controls(controls)

    async def _apply_controls(
        self, device: OnlineDevice, plan: RunPlan, fence: int, ready: PreparedDevice
    ) -> PreparedDevice:
        """Set the controls that need root, last of all; a device that deviates from them is not ready.

        Raises:
            ControlImpossible: it has nothing of that kind, which waiting does not change.
        """
        if not plan.controls.needs_root:
            return ready
        states = await set_controls(device.adb, fence, plan.controls)
        missing = missing_controls(replace(plan.controls, cores=CoreKind.ANY), states)
        if not (gaps := [*missing, *control_deviations(states)]):
            return replace(ready, controls=(*ready.controls, *states))
        await restore_controls(device.adb)
        if missing or any(state.problem for state in states):
            raise ControlImpossible(f"{device.adb.serial}: {'; '.join(gaps)}")
        return replace(ready, unmet=tuple(gaps))

    async def _read_preflight(self, device: OnlineDevice) -> Preflight:
        return await read_preflight(device.adb, self.clock.now())

    def _has_all_files(self, device: OnlineDevice, plan: RunPlan, preflight: Preflight) -> bool:
        """Return whether every file is present and verified, and the free storage meets the gate."""
        free_bytes = preflight.condition.storage_free_bytes
        is_short = free_bytes is not None and free_bytes < plan.gates.min_storage_bytes
        files = (*plan.files, SUPERVISOR_FILE)
        return not is_short and device.state_cache.holds_files(files, preflight, self.clock.monotonic())

    async def _ensure_files(self, device: OnlineDevice, plan: RunPlan, fence: int) -> int:
        """Verify all digests on the device, and push missing files; return the bytes pushed."""
        adb, began_s = device.adb, self.clock.monotonic()
        supervisor = await ensure_supervisor(adb)
        # Record on the device which runs used which files since the last call.
        folder = quote(cache_folder(adb.work_root))
        for used_by, digests in device.state_cache.take_recorded_uses().items():
            touch = f"cd {folder} && set -- {' '.join(digests)} && {touch_used(_ALL_OF_THEM, used_by)}"
            await adb.shell(touch, deadline_s=SHELL_DEADLINE_S)
        await evict_files(
            adb,
            plan.files,
            min_free_bytes=plan.gates.min_storage_bytes,
            cache_limit_bytes=self.device_cache_limit_bytes,
        )
        cached = await self._push_missing(device, plan.files, fence)
        for result in (supervisor, cached):
            device.state_cache.record_verified(result.state_by_digest, began_s)
        return cached.pushed_bytes

    async def _push_missing(self, device: OnlineDevice, files: Sequence[PlanFile], fence: int) -> CacheResult:
        """Put the plan's files into the device's cache; a corrupt local copy is downloaded again, once."""
        try:
            return await ensure_cached(device.adb, files, self._local_path, fence=fence)
        except LocalCopyCorrupted as error:
            log.warning("host_copy_damaged", reason=error.message, hint=error.hint)
        self.artifacts.invalidate(file.digest for file in files)
        return await ensure_cached(device.adb, files, self._local_path, fence=fence)

    async def _local_path(self, digest: Digest) -> Path:
        return await self._retry.call(
            lambda: self.artifacts.fetch(digest), away_s=FARM_AWAY_S, away=(FarmFault,)
        )


def _prepared_device(device: OnlineDevice, plan: RunPlan, fence: int, condition: Condition) -> PreparedDevice:
    """Return a device that needs nothing more for the run."""
    device.state_cache.record_use(plan.files, fence)
    return PreparedDevice(
        path_by_name={file.name: cache_path(device.adb.work_root, file.digest) for file in plan.files},
        pushed_bytes=0,
        condition=condition,
        waited_s=0.0,
        unmet=(),
        controls=tuple(screen_controls(plan.controls, device.state_cache.screen_found, condition)),
    )


def _needs_waking(condition: Condition, controls: Controls) -> bool:
    is_off = controls.screen is Screen.ON and condition.screen_on is False
    return is_off or (controls.stay_awake and condition.stay_awake is False)


def _lasting_controls(controls: Controls) -> tuple[bool, Screen]:
    """Return the controls that stay set over several runs."""
    return controls.stay_awake, controls.screen
