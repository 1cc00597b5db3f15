"""The end of a run: a silent wait, then the collection of its results."""

from dataclasses import dataclass, replace

import structlog

from agents.adb.shell_v2 import ShellResult
from agents.device.conditions import read_boot_id, read_rails
from agents.device.run.collect import CollectedRun, collect_command, collect_run
from agents.device.run.cpu_affinity import actual_affinity
from agents.device.run.run_control import RunLost, RunStatus, RunWait, run_status, wait_run
from agents.devices.monitor import OnlineDevice
from agents.host.retry import TransportRetry
from agents.outbox.attempt_journal import JournalRecord
from farm.clock import Clock
from farm.core.devices.controls import CORES, ControlState
from farm.core.devices.screen_state import OBSERVED_CONTROLS, with_screen_after
from farm.core.errors import (
    AdbdRestarted,
    ControlImpossible,
    DeviceError,
    DeviceLost,
    DeviceOffline,
    DeviceRebooted,
    DeviceTimeout,
)
from farm.core.runs.evidence import Evidence
from farm.phone.settings import with_read_back

log = structlog.get_logger(__name__)

#: Beyond the plan's own time-out: the supervisor's time to kill it, and a slow device.
WAIT_MARGIN_S = 60.0
#: Time a device may be away before its attempt counts as lost (FAULTS 1 to 3).
AWAY_S = 90.0
#: To collect a run from a device whose services hang.
_PROBE_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompletion:
    """Waits for runs of one agent to end, and collects what they left."""

    clock: Clock
    retry: TransportRetry
    wait_margin_s: float = WAIT_MARGIN_S
    away_s: float = AWAY_S

    async def complete(self, record: JournalRecord, device: OnlineDevice) -> Evidence:
        """Return the record's draft with the run's results, once it has ended.

        Raises:
            DeviceLost: the device stayed away too long.
            DeviceRebooted, AdbdRestarted, RunLost: the run is gone, by whose doing.
            DeviceError: the device was too slow, or talks nonsense.
            AdbServerDown: our server was away too long.
        """
        try:
            return await self._complete(record, device)
        except DeviceOffline as error:
            raise DeviceLost(
                f"{record.device_id} went away during run {record.fence} and did not come back within "
                f"{self.away_s:g} s: {error.message}"
            ) from error

    async def _complete(self, record: JournalRecord, device: OnlineDevice) -> Evidence:
        draft = record.draft
        try:
            waited = await self._end(record, device)
        except RunLost as error:
            before, adb = draft.before, device.adb
            boot_id = await self.retry.call(lambda: read_boot_id(adb), away_s=self.away_s)
            raise attribute_lost_run(error, before.boot_id if before else None, boot_id) from error
        output: ShellResult | None = waited.output
        finished_at = self.clock.now()

        async def collect() -> CollectedRun:
            # The output at the run's end is used once; if it is incomplete, the device is asked again.
            nonlocal output
            first, output = output, None
            return await collect_run(
                device.adb,
                record.fence,
                limit_bytes=record.plan.output_limit_bytes,
                now=finished_at,
                output=first,
            )

        ended_s = self.clock.monotonic()
        collected = await self.retry.call(collect, away_s=self.away_s)
        rails = await self._read_rails(device) if record.plan.reads_rails else ""
        device.state_cache.record_after_run(collected.after, ended_s)
        return replace(
            draft,
            exit=collected.exit,
            stdout=collected.stdout.decode(errors="replace"),
            stderr=collected.stderr.decode(errors="replace"),
            stdout_dropped_bytes=collected.stdout_dropped_bytes,
            stderr_dropped_bytes=collected.stderr_dropped_bytes,
            after=collected.after,
            finished_at=finished_at,
            away_s=round(waited.away_s, 1),
            controls=_controls(device, draft, collected),
            trace=collected.trace,
            rails_after=rails,
        )

    async def _read_rails(self, device: OnlineDevice) -> str:
        adb = device.adb
        return await self.retry.call(lambda: read_rails(adb), away_s=self.away_s)

    async def _end(self, record: JournalRecord, device: OnlineDevice) -> RunWait:
        """Wait until the run has ended; return what the device printed at its end."""
        adb, fence = device.adb, record.fence
        try:
            return await wait_run(
                adb,
                fence,
                deadline_s=record.plan.timeout_s + self.wait_margin_s,
                grace_s=self.away_s,
                then=collect_command(
                    adb.work_root,
                    fence,
                    with_controls=any(state.name not in OBSERVED_CONTROLS for state in record.draft.controls),
                ),
            )
        except DeviceTimeout as error:
            if await run_status(adb, fence) is not RunStatus.FINISHED:
                raise
            # An unreadable condition does not invalidate a finished run.
            log.warning("condition_unreadable", code=error.code, reason=error.message)
        result = await adb.shell(
            collect_command(adb.work_root, fence, with_condition=False, with_controls=True),
            deadline_s=_PROBE_DEADLINE_S,
        )
        return RunWait(output=result, away_s=0.0)


def _controls(device: OnlineDevice, draft: Evidence, collected: CollectedRun) -> tuple[ControlState, ...]:
    """Return the controls of the run with their values read back around it.

    Raises:
        ControlImpossible: the run could not be bound to its cores, and did not begin.
    """
    online = collected.after.online_cores if collected.after else ()
    read_back = with_screen_after(with_read_back(draft.controls, collected.controls), collected.after)
    states = [
        actual_affinity(state, collected.cores, online) if state.name == CORES else state
        for state in read_back
    ]
    for state in states:
        if state.name == CORES and state.actual_before != state.requested:
            actual = state.actual_before or "unknown"
            raise ControlImpossible(
                f"{device.adb.serial} did not bind the run to cores {state.requested}; bound to {actual}"
            )
    return tuple(states)


def attribute_lost_run(lost: RunLost, boot_id_before: str | None, boot_id: str | None) -> DeviceError:
    """Return the cause of a run that left no record, by the device's boot ids and its absence.

    In the same boot, a run that is lost together with the connection ended with adbd: init kills what adbd
    had started.
    """
    if None not in (boot_id_before, boot_id) and boot_id != boot_id_before:
        return DeviceRebooted(f"{lost.message}: the phone restarted during it")
    if lost.was_away:
        return AdbdRestarted(f"{lost.message}, and the connection ended with it")
    return lost
