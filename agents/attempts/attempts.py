"""Carries attempts from the farm's assignment to its acknowledgement, across lives of the agent."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from random import Random

import structlog

from agents.attempts.reconcile import AttemptDecision
from agents.attempts.runner import AttemptRunner, DeferredRun
from agents.devices.active import ActiveAttempt, ActiveAttempts
from agents.host.atomic_file import DiskThread
from agents.host.backoff import Backoff
from agents.outbox.journal import AttemptJournal, AttemptPhase, JournalRecord, new_journal_record
from agents.outbox.sender import ReportDelivery
from agents.outbox.spool import Spool
from farm.core.base.ids import AttemptId
from farm.core.errors import FarmError, HostDiskFull
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.wire.agents.protocol import Assignment, AttemptOrder, Report

log = structlog.get_logger(__name__)

#: As the wire has it.
_REASON_LIMIT = 500
_UNSTARTED = (AttemptState.CLAIMED, AttemptState.PREPARING)
_STOPPABLE = (*_UNSTARTED, AttemptState.MEASURING)


class AttemptController:
    """Does what the farm decides about attempts, each in a task of its own.

    Invariant: an attempt leaves the journal only when its phone is clean and the farm knows how it ended.
    """

    def __init__(
        self,
        *,
        hand: ActiveAttempts,
        runner: AttemptRunner,
        delivery: ReportDelivery,
        journal: AttemptJournal,
        spool: Spool,
        disk: DiskThread,
        random: Random,
        tasks: asyncio.TaskGroup,
        is_more: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_more` tells whether the farm has more for phones of this host, as far as it said."""
        self._hand = hand
        self._runner = runner
        self._delivery = delivery
        self._journal = journal
        self._spool = spool
        self._disk = disk
        self._random = random
        self._tasks = tasks
        self._is_more = is_more

    async def recover(self) -> None:
        """Take up what an earlier life left; runs on phones wait until the farm says what becomes of them."""
        spooled = set(await self._disk.call(self._spool.pending))
        for entry in await self._disk.call(self._journal.entries):
            await self._recover_entry(entry, is_spooled=entry.attempt_id in spooled)
            spooled.discard(entry.attempt_id)
        for attempt_id in spooled:
            self._tasks.create_task(self._delivery.deliver(attempt_id), name=f"deliver {attempt_id}")

    async def resend(self) -> int:
        """Report once more whatever was acknowledged and is still kept; how many attempts that are."""
        kept = await self._disk.call(self._spool.acknowledged)
        for attempt_id in kept:
            if await self._disk.call(self._spool.resend, attempt_id):
                self._tasks.create_task(self._delivery.deliver(attempt_id), name=f"deliver {attempt_id}")
        return len(kept)

    async def resend_requested(self, attempt_ids: Sequence[AttemptId], *, within_s: float) -> None:
        """Report those once more that were acknowledged and are still kept; waits so long for the answers."""
        sending = [
            self._tasks.create_task(self._delivery.deliver(attempt_id), name=f"deliver {attempt_id}")
            for attempt_id in attempt_ids
            if await self._disk.call(self._spool.resend, attempt_id)
        ]
        if sending:
            await asyncio.wait(sending, timeout=within_s)

    def apply_orders(self, orders: Sequence[AttemptOrder]) -> None:
        """Apply what the farm decided when the session was opened."""
        for order in orders:
            held = self._hand.attempt_by_id.get(order.attempt_id)
            if held is None:
                continue
            log.info("attempt_ordered", attempt_id=order.attempt_id, order=order.do, why=order.why)
            if order.do == "continue":
                self._adopt(held)
            elif held.entry.phase in _STOPPABLE:
                self._stop(held)
            elif held.entry.phase is AttemptState.RETURNED:
                self._acknowledge(held)

    def apply(self, decision: AttemptDecision) -> None:
        """Do what an answer of the farm means."""
        for assignment in decision.start:
            self._start(assignment)
        for attempt_id in decision.stop:
            held = self._hand.attempt_by_id.get(attempt_id)
            if held is not None and not held.stopping and held.entry.phase in _STOPPABLE:
                log.info("attempt_unwanted", attempt_id=attempt_id, phase=held.entry.phase)
                self._stop(held)
        for attempt_id in decision.forget:
            if (held := self._hand.attempt_by_id.get(attempt_id)) is not None:
                self._acknowledge(held)

    def cut_short(self, attempt_id: AttemptId, error: FarmError) -> None:
        """Stop an attempt that the farm may still want, and tell it why when it can be told."""
        held = self._hand.attempt_by_id.get(attempt_id)
        if held is None or held.stopping or held.entry.phase not in _STOPPABLE:
            return
        log.warning("attempt_cut_short", attempt_id=attempt_id, code=error.code, reason=error.message)
        began = held.entry.phase is AttemptState.MEASURING
        # At once: from here on nothing else ends it, and the farm hears of nothing that is over.
        held.entry = replace(
            held.entry,
            phase=AttemptState.REPORTING if began else AttemptState.RETURNED,
            reason=error.message,
        )
        held.task = self._task(self._cut(held, held.task, error if began else None), held)

    async def _cut(
        self, held: ActiveAttempt, running: asyncio.Task[None] | None, error: FarmError | None
    ) -> None:
        if running is not None:
            running.cancel()
            await asyncio.wait({running})
        if error is None:
            await self._give_back(held, held.entry.reason or "")
        else:
            await self._keep(held, self._runner.cut_short(held.entry, error))
            self._deliver(held)
        await self._clear(held)

    async def _recover_entry(self, entry: JournalRecord, *, is_spooled: bool) -> None:
        held = self._hand.take(entry)
        if is_spooled:
            held.entry = replace(entry, phase=AttemptState.REPORTING)
            self._deliver(held)
        elif entry.phase in _UNSTARTED:
            await self._give_back(held, "the agent was restarted")
        if held.entry.phase is not AttemptState.MEASURING:
            held.task = self._task(self._clear(held), held)
        log.info("attempt_recovered", attempt_id=entry.attempt_id, phase=held.entry.phase)

    def _start(self, assignment: Assignment) -> None:
        if assignment.plan is not None:
            held = self._hand.take(new_journal_record(assignment, assignment.plan))
            held.task = self._task(self._execute(held), held)

    def _adopt(self, held: ActiveAttempt) -> None:
        if held.task is None and held.entry.phase is AttemptState.MEASURING and not held.stopping:
            held.task = self._task(self._execute(held, adopt=True), held)

    def _stop(self, held: ActiveAttempt) -> None:
        held.stopping = held.acknowledged = True
        held.task = self._task(self._abandon(held, held.task), held)

    def _acknowledge(self, held: ActiveAttempt) -> None:
        held.acknowledged = True
        self._tasks.create_task(self._let_go(held), name=f"let go {held.entry.attempt_id}")

    def _task(self, work: Coroutine[None, None, None], held: ActiveAttempt) -> asyncio.Task[None]:
        return self._tasks.create_task(work, name=f"attempt {held.entry.attempt_id}")

    def _deliver(self, held: ActiveAttempt) -> None:
        self._tasks.create_task(self._send(held), name=f"deliver {held.entry.attempt_id}")

    async def _execute(self, held: ActiveAttempt, *, adopt: bool = False) -> None:
        """From plan to evidence, or to a give-back; then the phone is cleaned up."""
        entry = held.entry
        with structlog.contextvars.bound_contextvars(
            attempt_id=entry.attempt_id, job_id=entry.job_id, device_id=entry.device_id, fence=entry.fence
        ):
            ending = await self._runner.run(
                entry,
                lambda phase, draft: self._advance(held, phase, draft),
                adopt,
                lambda waiting_for: self._record_waiting(held, waiting_for),
            )
            if isinstance(ending, DeferredRun):
                await self._give_back(held, ending.reason)
                log.info("attempt_returned", reason=ending.reason)
            else:
                # From here on an order to stop comes too late: what ran is reported.
                held.entry = replace(held.entry, phase=AttemptState.REPORTING)
                await self._keep(held, ending)
                self._deliver(held)
                log.info("attempt_ended", **_summary(ending))
            await self._clear(held)

    async def _advance(self, held: ActiveAttempt, phase: AttemptPhase, draft: Evidence) -> None:
        entry = replace(held.entry, phase=phase, draft=draft)
        await self._disk.call(self._journal.write, entry)
        # Only now: what the farm is told of an attempt, the next life knows too.
        held.entry = entry
        if phase is AttemptState.MEASURING:
            self._hand.changed.set()

    def _record_waiting(self, held: ActiveAttempt, waiting_for: str | None) -> None:
        was_waiting = held.waiting_for is not None
        held.waiting_for = None if waiting_for is None else waiting_for[:_REASON_LIMIT]
        # How warm it is from one look to the next is no news: that goes with the next call.
        if was_waiting != (waiting_for is not None):
            self._hand.changed.set()

    async def _keep(self, held: ActiveAttempt, evidence: Evidence) -> None:
        """Have the evidence on disk, however long the disk is full."""
        backoff = Backoff(self._random)
        while True:
            try:
                await self._disk.call(self._put, held.entry.attempt_id, evidence)
            except HostDiskFull as error:
                log.warning("evidence_not_spooled", reason=error.message, hint=error.hint)
                await asyncio.sleep(backoff.next_s())
            else:
                return

    def _put(self, attempt_id: AttemptId, evidence: Evidence) -> None:
        self._spool.put(attempt_id, Report(evidence=evidence).model_dump_json().encode())

    async def _send(self, held: ActiveAttempt) -> None:
        await self._delivery.deliver(held.entry.attempt_id)
        held.acknowledged = True
        await self._let_go(held)

    async def _give_back(self, held: ActiveAttempt, reason: str) -> None:
        held.entry = replace(held.entry, phase=AttemptState.RETURNED, reason=reason)
        self._hand.changed.set()
        try:
            await self._disk.call(self._journal.write, held.entry)
        except HostDiskFull as error:
            # What the journal has instead, an earlier phase or nothing, means as much: nothing ran.
            log.warning("give_back_not_journaled", reason=error.message, hint=error.hint)

    async def _abandon(self, held: ActiveAttempt, running: asyncio.Task[None] | None) -> None:
        if running is not None:
            running.cancel()
            await asyncio.wait({running})
        await self._clear(held)

    async def _clear(self, held: ActiveAttempt) -> None:
        """Leave nothing of the attempt on its phone, whenever that can be reached again."""
        device_id, fence, is_more = held.entry.device_id, held.entry.fence, self._is_more()
        await self._runner.clear(device_id, fence, stay_awake=is_more)
        held.cleaned = True
        await self._let_go(held)
        if is_more:
            await self._runner.await_next_run(
                device_id, lambda: self._hand.fence_by_device[device_id] == fence
            )

    async def _let_go(self, held: ActiveAttempt) -> None:
        if not held.is_over:
            return
        attempt_id = held.entry.attempt_id
        await self._disk.call(self._journal.remove, attempt_id)
        self._hand.attempt_by_id.pop(attempt_id, None)
        # Only now: the farm hands the phone out again as soon as it hears that it is clean.
        self._hand.record_cleaned(held.entry.device_id, held.entry.fence)
        self._hand.changed.set()


def _summary(evidence: Evidence) -> dict[str, object]:
    """The fields of the one line that an attempt leaves in the log."""
    ended, trouble = evidence.exit, evidence.trouble
    return {
        "exit_code": ended.code if ended else None,
        "timed_out": ended.timed_out if ended else None,
        "duration_s": ended.duration_s if ended else None,
        "code": trouble.code if trouble else None,
        "blame": trouble.blame if trouble else None,
        "reason": trouble.message if trouble else None,
        "waited_s": round(evidence.waited_s, 1),
        "pushed_bytes": evidence.pushed_bytes,
        "adopted": evidence.adopted,
        "away_s": evidence.away_s,
    }
