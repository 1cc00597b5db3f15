"""Delivery of reports to the farm; reports that wait at the same time share one call."""

import asyncio
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from random import Random

import structlog

from agents.farm_api import FarmApi
from agents.host.atomic_file import DiskThread
from agents.host.retry import Backoff
from agents.outbox.spool import Spool
from farm.client.responses import ProblemError
from farm.core.base.ids import AttemptId
from farm.core.errors import AuthError, Blame, FarmError, FarmUnreachable
from farm.core.results.settle.report import ReportAnswer
from farm.wire.agents.report_batch import MAX_REPORTS

log = structlog.get_logger(__name__)

#: Concurrent calls: after an outage there may be hundreds of reports, of megabytes each.
MAX_CONCURRENT_CALLS = 4
#: The size of a batch; a larger report is sent alone.
MAX_BATCH_BYTES = 4 * 1024 * 1024

_Answer = ReportAnswer | None


@dataclass(eq=False)
class ReportDelivery:
    """Sends each report until the farm has answered; reports that wait at the same time go in batches.

    A farm of an earlier release that rejects batches is sent one report per call from then on: the rejection
    of a batch is never taken for the rejection of a report.
    """

    api: FarmApi
    spool: Spool
    disk: DiskThread
    random: Random
    _: KW_ONLY
    #: The number of concurrent calls.
    at_once: int = MAX_CONCURRENT_CALLS
    #: Set once the farm has opened a session, so that it serves this release: another one could refuse for
    #: good what it cannot read. None: nothing is waited for.
    session_opened: asyncio.Event | None = None

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.at_once)
        self._waiting: dict[AttemptId, asyncio.Future[_Answer]] = {}
        self._accepts_batches = True

    async def deliver(self, attempt_id: AttemptId) -> None:
        """Send the attempt's report, always the same bytes; on return it no longer waits."""
        if self.session_opened is not None:
            await self.session_opened.wait()
        backoff = Backoff(self.random, first_s=0.25, cap_s=5.0)
        while True:
            try:
                return await self._deliver_once(attempt_id)
            except FarmError as error:
                log.info("report_delayed", attempt_id=attempt_id, code=error.code, reason=error.message)
                await asyncio.sleep(backoff.next_s())

    async def _deliver_once(self, attempt_id: AttemptId) -> None:
        """Raise FarmError while the report waits: the farm is away, or the report cannot be archived."""
        try:
            answer = await self.send_report(attempt_id)
        except FarmError as error:
            if not is_final(error):
                raise
            await self.disk.call(self.spool.refuse, attempt_id)
            log.warning("report_refused", attempt_id=attempt_id, code=error.code, reason=error.message)
        else:
            if answer is not None:
                await self.disk.call(self.spool.acknowledge, attempt_id)
                log.debug("report_acknowledged", attempt_id=attempt_id, counted=answer.counted)

    async def send_report(self, attempt_id: AttemptId) -> _Answer:
        """Return the farm's answer to a report; None when none waits on the disk.

        Raises:
            FarmError: as `FarmApi.report`.
        """
        answer = self._waiting.setdefault(attempt_id, asyncio.get_running_loop().create_future())
        async with self._slots:
            # Unless an earlier call has sent it along.
            if self._waiting.get(attempt_id) is answer:
                await self._send_some(attempt_id)
        # Shielded, because other callers may await it too: cancelling one must not cancel the rest.
        return await asyncio.shield(answer)

    async def _send_some(self, first: AttemptId) -> None:
        """Send a report with as many waiting ones as fit into one call."""
        futures = {first: self._waiting.pop(first)}
        try:
            for bodies in await self._batch_with(first, futures):
                if len(bodies) > 1 and await self._send_several(bodies, futures):
                    continue
                for attempt_id, body in bodies.items():
                    try:
                        _resolve(futures[attempt_id], await self.api.report(attempt_id, body))
                    except FarmError as error:
                        _resolve(futures[attempt_id], error)
        finally:
            for answer in futures.values():
                if not answer.done():
                    # The sending task was cancelled.
                    _resolve(answer, FarmUnreachable("the report was not sent to its end"))

    async def _batch_with(
        self, first: AttemptId, futures: dict[AttemptId, asyncio.Future[_Answer]]
    ) -> list[dict[AttemptId, bytes]]:
        """Return batches: the report with those that fit; one that is too large is alone."""
        batch: dict[AttemptId, bytes] = {}
        left_bytes = MAX_BATCH_BYTES
        next_id: AttemptId | None = first
        while next_id is not None:
            body = await self.disk.call(self.spool.find, next_id)
            if body is None:
                _resolve(futures[next_id], None)
            elif batch and len(body) > left_bytes:
                return [batch, {next_id: body}]
            else:
                batch[next_id] = body
                left_bytes -= len(body)
            takes_more = self._accepts_batches and len(batch) < MAX_REPORTS
            next_id = next(iter(self._waiting), None) if takes_more else None
            if next_id is not None:
                futures[next_id] = self._waiting.pop(next_id)
        return [batch]

    async def _send_several(
        self, bodies: dict[AttemptId, bytes], futures: dict[AttemptId, asyncio.Future[_Answer]]
    ) -> bool:
        """Send a batch; return False when this farm accepts only one report per call."""
        try:
            answers: Mapping[AttemptId, ReportAnswer | FarmError] = await self.api.reports(bodies)
        except FarmError as error:
            if is_final(error):
                log.info("report_batches_rejected", code=error.code, reason=error.message)
                self._accepts_batches = False
                return False
            answers = dict.fromkeys(bodies, error)
        for attempt_id, answer in answers.items():
            _resolve(futures[attempt_id], answer)
        return True


def _resolve(future: asyncio.Future[_Answer], answer: _Answer | FarmError) -> None:
    if isinstance(answer, FarmError):
        future.set_exception(answer)
        # Mark as retrieved: the caller may be gone.
        future.exception()
    else:
        future.set_result(answer)


def is_final(error: FarmError) -> bool:
    """Return whether the farm permanently rejects what was sent.

    Only a problem document comes from the farm: a proxy may return the same status codes. A rejected
    credential can be replaced, so that reports wait for that.
    """
    is_from_farm = isinstance(error.__cause__, ProblemError)
    is_about_report = error.blame is Blame.USER and not error.transient
    return is_from_farm and is_about_report and not isinstance(error, AuthError)
