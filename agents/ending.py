"""How a run ends: it is waited for in silence, then what it left is brought back."""

from dataclasses import dataclass, replace

import structlog

from agents.adb.shell_v2 import ShellResult
from agents.device.collect import CollectedRun, collect_command, collect_run
from agents.device.execute import RunStatus, run_status, wait_run
from agents.journal import Entry
from agents.patience import Patience
from agents.watch import Phone
from farm.clock import Clock
from farm.core.errors import DeviceTimeout
from farm.core.evidence import Evidence

log = structlog.get_logger(__name__)

#: Past the plan's own time-out: the supervisor's patience with what does not die, and a slow phone.
WAIT_MARGIN_S = 60.0
#: A phone that is away may come back within this time before its attempt is called lost (FAULTS 1 to 3).
AWAY_S = 90.0
#: For a phone whose services hang, to say what a run left.
_UNASKED_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Brings runs of one agent to their end."""

    clock: Clock
    patience: Patience
    wait_margin_s: float = WAIT_MARGIN_S

    async def finished(self, entry: Entry, phone: Phone, draft: Evidence) -> Evidence:
        """The draft with what the run left, once it has ended.

        Raises:
            DeviceError: the run, or the phone, was lost, or was too slow.
            AdbServerDown: our server was away too long.
        """
        said: ShellResult | None = await self._end(entry, phone)
        finished_at = self.clock.now()

        async def collect() -> CollectedRun:
            # What came with the end is read once; should that not do, the phone is asked again.
            nonlocal said
            found, said = said, None
            return await collect_run(
                phone.device,
                phone.facts.work_root,
                entry.fence,
                limit_bytes=entry.plan.output_limit_bytes,
                now=finished_at,
                said=found,
            )

        ended_s = self.clock.monotonic()
        collected = await self.patience.call(collect, away_s=AWAY_S)
        phone.memory.note_after(collected.after, ended_s)
        return replace(
            draft,
            exit=collected.exit,
            stdout=collected.stdout.decode(errors="replace"),
            stderr=collected.stderr.decode(errors="replace"),
            stdout_dropped_bytes=collected.stdout_dropped_bytes,
            stderr_dropped_bytes=collected.stderr_dropped_bytes,
            after=collected.after,
            finished_at=finished_at,
        )

    async def _end(self, entry: Entry, phone: Phone) -> ShellResult:
        """Wait until the run has ended; what the phone says of it, and of itself."""
        device, work_root, fence = phone.device, phone.facts.work_root, entry.fence
        try:
            return await wait_run(
                device,
                work_root,
                fence,
                deadline_s=entry.plan.timeout_s + self.wait_margin_s,
                grace_s=AWAY_S,
                then=collect_command(work_root, fence),
            )
        except DeviceTimeout as error:
            if await run_status(device, work_root, fence) is not RunStatus.FINISHED:
                raise
            # A phone that does not say how it is spoils no finished run.
            log.warning("condition_unread", code=error.code, reason=error.message)
        return await device.shell(
            collect_command(work_root, fence, with_condition=False), deadline_s=_UNASKED_DEADLINE_S
        )
