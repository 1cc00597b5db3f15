"""The controller of attempts: from assignment to acknowledgement, across restarts of the agent."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from random import Random

import structlog

from agents.attempts.reconcile import STOPPABLE, AttemptDecision
from agents.attempts.runner import AttemptRunner, DeferredRun
from agents.devices.active_attempts import ActiveAttempt, ActiveAttempts
from agents.host.atomic_file import DiskThread
from agents.host.retry import Backoff
from agents.outbox.attempt_journal import AttemptJournal, AttemptPhase, JournalRecord, new_journal_record
from agents.outbox.sender import ReportDelivery
from agents.outbox.spool import Spool
from farm.core.base.ids import AttemptId
from farm.core.errors import FarmError, HostDiskFull, HostError
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.wire.agents.protocol import Assignment, AttemptOrder, Report

log = structlog.get_logger(__name__)

#: The limit of the wire.
_REASON_LIMIT = 500
_UNSTARTED = (AttemptState.CLAIMED, AttemptState.PREPARING)


@dataclass(eq=False, kw_only=True)
class AttemptController:
    """Carries out the farm's decisions about attempts, each attempt in a task of its own.

    Invariant: an attempt leaves the journal only when its device is clean and the farm knows its outcome.
    """

    active: ActiveAttempts
    runner: AttemptRunner
    delivery: ReportDelivery
    journal: AttemptJournal
    spool: Spool
    disk: DiskThread
    random: Random
    tasks: asyncio.TaskGroup
    #: True if the farm has more work for this host's devices.
    is_more: Callable[[], bool] = lambda: False

    async def recover(self) -> None:
        """Recover the attempts of an earlier run; runs on devices wait until the farm decides about them."""
        spooled = set(await self.disk.call(self.spool.pending))
        for record in await self.disk.call(self.journal.records):
            await self._recover_record(record, is_spooled=record.attempt_id in spooled)
            spooled.discard(record.attempt_id)
        for attempt_id in spooled:
            self._deliver_alone(attempt_id)

    async def resend(self) -> int:
        """Send every acknowledged report that is still kept again; return their number."""
        archived = await self.disk.call(self.spool.acknowledged)
        for attempt_id in archived:
            if await self._queue_again(attempt_id):
                self._deliver_alone(attempt_id)
        return len(archived)

    async def resend_requested(self, attempt_ids: Sequence[AttemptId], *, within_s: float) -> None:
        """Send these acknowledged reports again if they are kept; wait up to `within_s` for the answers."""
        sending = [
            self._deliver_alone(attempt_id)
            for attempt_id in attempt_ids
            if await self._queue_again(attempt_id)
        ]
        if sending:
            await asyncio.wait(sending, timeout=within_s)

    async def _queue_again(self, attempt_id: AttemptId) -> bool:
        try:
            return await self.disk.call(self.spool.resend, attempt_id)
        except HostDiskFull as error:
            log.warning("report_not_resent", attempt_id=attempt_id, reason=error.message, hint=error.hint)
            return False

    def apply_orders(self, orders: Sequence[AttemptOrder]) -> None:
        """Apply the farm's orders at the start of a session."""
        for order in orders:
            attempt = self.active.attempt_by_id.get(order.attempt_id)
            if attempt is None:
                continue
            log.info("attempt_ordered", attempt_id=order.attempt_id, order=order.do, why=order.why)
            if order.do == "continue":
                self._adopt(attempt)
            elif attempt.record.phase in STOPPABLE:
                self._stop(attempt)
            elif attempt.record.phase is AttemptState.RETURNED:
                self._acknowledge(attempt)

    def apply(self, decision: AttemptDecision) -> None:
        """Apply the decision about one answer of the farm."""
        for assignment in decision.start:
            self._start(assignment)
        for attempt_id in decision.stop:
            attempt = self.active.attempt_by_id.get(attempt_id)
            if attempt is not None and not attempt.stopping and attempt.record.phase in STOPPABLE:
                log.info("attempt_unwanted", attempt_id=attempt_id, phase=attempt.record.phase)
                self._stop(attempt)
        for attempt_id in decision.forget:
            if (attempt := self.active.attempt_by_id.get(attempt_id)) is not None:
                self._acknowledge(attempt)

    def interrupt(self, attempt_id: AttemptId, error: FarmError) -> None:
        """Stop an attempt that the farm may still want; report the reason when the farm is reachable."""
        attempt = self.active.attempt_by_id.get(attempt_id)
        if attempt is None or attempt.stopping or attempt.record.phase not in STOPPABLE:
            return
        log.warning("attempt_interrupted", attempt_id=attempt_id, code=error.code, reason=error.message)
        began = attempt.record.phase is AttemptState.MEASURING
        # Before any await: from here on nothing else ends it, and it is no longer reported as active.
        attempt.record = replace(
            attempt.record,
            phase=AttemptState.REPORTING if began else AttemptState.RETURNED,
            reason=error.message,
        )
        attempt.task = self._task(self._interrupt(attempt, attempt.task, error if began else None), attempt)

    async def _interrupt(
        self, attempt: ActiveAttempt, running: asyncio.Task[None] | None, error: FarmError | None
    ) -> None:
        await _cancel(running)
        if error is None:
            await self._return(attempt, attempt.record.reason or "")
        else:
            await self._spool_evidence(attempt, self.runner.failed_evidence(attempt.record.draft, error))
            self._deliver(attempt)
        await self._clean_up(attempt)

    async def _recover_record(self, record: JournalRecord, *, is_spooled: bool) -> None:
        attempt = self.active.add(record)
        if is_spooled:
            attempt.record = replace(record, phase=AttemptState.REPORTING)
            if await self.disk.call(self.spool.find, record.attempt_id) is None:
                # The farm is told, unless the journal has the run's evidence, and only a pass is lost.
                damaged = HostError("the report of this run was damaged on the host's disk, and is set aside")
                await self._spool_evidence(attempt, self.runner.failed_evidence(record.draft, damaged))
            self._deliver(attempt)
        elif record.phase in _UNSTARTED:
            await self._return(attempt, "the agent was restarted")
        if attempt.record.phase is not AttemptState.MEASURING:
            attempt.task = self._task(self._clean_up(attempt), attempt)
        log.info("attempt_recovered", attempt_id=record.attempt_id, phase=attempt.record.phase)

    def _start(self, assignment: Assignment) -> None:
        if assignment.plan is not None:
            attempt = self.active.add(new_journal_record(assignment, assignment.plan))
            attempt.task = self._task(self._execute(attempt), attempt)

    def _adopt(self, attempt: ActiveAttempt) -> None:
        if attempt.task is None and attempt.record.phase is AttemptState.MEASURING and not attempt.stopping:
            attempt.task = self._task(self._execute(attempt, adopt=True), attempt)

    def _stop(self, attempt: ActiveAttempt) -> None:
        attempt.stopping = attempt.acknowledged = True
        attempt.task = self._task(self._clean_up(attempt, attempt.task), attempt)

    def _acknowledge(self, attempt: ActiveAttempt) -> None:
        attempt.acknowledged = True
        self.tasks.create_task(self._release(attempt), name=f"release {attempt.record.attempt_id}")

    def _task(self, work: Coroutine[None, None, None], attempt: ActiveAttempt) -> asyncio.Task[None]:
        return self.tasks.create_task(work, name=f"attempt {attempt.record.attempt_id}")

    def _deliver_alone(self, attempt_id: AttemptId) -> asyncio.Task[None]:
        return self.tasks.create_task(self.delivery.deliver(attempt_id), name=f"deliver {attempt_id}")

    def _deliver(self, attempt: ActiveAttempt) -> None:
        self.tasks.create_task(self._send(attempt), name=f"deliver {attempt.record.attempt_id}")

    async def _execute(self, attempt: ActiveAttempt, *, adopt: bool = False) -> None:
        """Run the plan to its evidence, or return the attempt; then clean the device up."""
        record = attempt.record
        with structlog.contextvars.bound_contextvars(
            attempt_id=record.attempt_id, job_id=record.job_id, device_id=record.device_id, fence=record.fence
        ):
            outcome = await self.runner.run(
                record,
                lambda phase, draft: self._advance(attempt, phase, draft),
                adopt,
                lambda waiting_for: self._record_waiting(attempt, waiting_for),
            )
            if isinstance(outcome, DeferredRun):
                await self._return(attempt, outcome.reason)
                log.info("attempt_returned", reason=outcome.reason)
            else:
                # From here on an order to stop is too late: the run is reported.
                attempt.record = replace(attempt.record, phase=AttemptState.REPORTING)
                await self._spool_evidence(attempt, outcome)
                self._deliver(attempt)
                log.info("attempt_ended", **_summary(outcome))
            await self._clean_up(attempt)

    async def _advance(self, attempt: ActiveAttempt, phase: AttemptPhase, draft: Evidence) -> None:
        record = replace(attempt.record, phase=phase, draft=draft)
        await self.disk.call(self.journal.write, record)
        # After the write: a phase that the farm hears of is on disk.
        attempt.record = record
        if phase is AttemptState.MEASURING:
            self.active.changed.set()

    def _record_waiting(self, attempt: ActiveAttempt, waiting_for: str | None) -> None:
        was_waiting = attempt.waiting_for is not None
        attempt.waiting_for = None if waiting_for is None else waiting_for[:_REASON_LIMIT]
        # Changing temperatures are no news: they go with the next call.
        if was_waiting != (waiting_for is not None):
            self.active.changed.set()

    async def _spool_evidence(self, attempt: ActiveAttempt, evidence: Evidence) -> None:
        """Write the evidence to disk, retrying while the disk is full."""
        backoff, body = Backoff(self.random), Report(evidence=evidence).model_dump_json().encode()
        while True:
            try:
                return await self.disk.call(self.spool.put, attempt.record.attempt_id, body)
            except HostDiskFull as error:
                log.warning("evidence_not_spooled", reason=error.message, hint=error.hint)
                await asyncio.sleep(backoff.next_s())

    async def _send(self, attempt: ActiveAttempt) -> None:
        await self.delivery.deliver(attempt.record.attempt_id)
        attempt.acknowledged = True
        await self._release(attempt)

    async def _return(self, attempt: ActiveAttempt, reason: str) -> None:
        attempt.record = replace(attempt.record, phase=AttemptState.RETURNED, reason=reason)
        self.active.changed.set()
        try:
            await self.disk.call(self.journal.write, attempt.record)
        except HostDiskFull as error:
            # The journal's earlier phase, or no record, means the same: nothing ran.
            log.warning("return_not_journaled", reason=error.message, hint=error.hint)

    async def _clean_up(self, attempt: ActiveAttempt, running: asyncio.Task[None] | None = None) -> None:
        """End the attempt's task, then clean the device up, as soon as it can be reached."""
        await _cancel(running)
        device_id, fence, is_more = attempt.record.device_id, attempt.record.fence, self.is_more()
        await self.runner.clean_up(device_id, fence, stay_awake=is_more)
        attempt.cleaned = True
        await self._release(attempt)
        if is_more:
            await self.runner.keep_ready(device_id, lambda: self.active.fence_by_device[device_id] == fence)

    async def _release(self, attempt: ActiveAttempt) -> None:
        if not attempt.is_over:
            return
        attempt_id = attempt.record.attempt_id
        try:
            await self.disk.call(self.journal.remove, attempt_id)
        except HostDiskFull as error:
            # The next start of the agent finds it, and the farm, which has its outcome, has it stopped.
            log.warning("journal_record_not_removed", reason=error.message, hint=error.hint)
        self.active.attempt_by_id.pop(attempt_id, None)
        # Last: the farm assigns the device again as soon as it hears that it is clean.
        self.active.record_cleaned(attempt.record.device_id, attempt.record.fence)
        self.active.changed.set()


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait({task})


def _summary(evidence: Evidence) -> dict[str, object]:
    """Return the fields of the attempt's one log line."""
    ended, error = evidence.exit, evidence.error
    return {
        "exit_code": ended and ended.code,
        "timed_out": ended and ended.timed_out,
        "duration_s": ended and ended.duration_s,
        "code": error and error.code,
        "blame": error and error.blame,
        "reason": error and error.message,
        "waited_s": round(evidence.waited_s, 1),
        "pushed_bytes": evidence.pushed_bytes,
        "adopted": evidence.adopted,
        "away_s": evidence.away_s,
    }
