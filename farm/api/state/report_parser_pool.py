"""Parse reports before their transactions begin: all that wait in one batch, on a few threads."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from farm.core.errors import FarmBusy
from farm.core.results.settle.report import IncomingReport, ParsedReport
from farm.database.engine import PARSERS, Database
from farm.services.results.parse import JobContexts, parse, report_subjects

#: The most bytes of one batch; a larger call is parsed alone. Whoever waits for a batch waits for all of it.
_MAX_BATCH_BYTES = 1024 * 1024
#: Reports that wait to be parsed are in memory; a caller that sends more is answered with FarmBusy.
_MAX_PENDING_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Call:
    reports: Sequence[IncomingReport]
    size_bytes: int
    parsed: asyncio.Future[list[ParsedReport]]


class ReportParserPool:
    """Parses the reports of calls, as many calls at once as wait when a thread is free."""

    def __init__(self, database: Database, *, max_pending_bytes: int = _MAX_PENDING_BYTES) -> None:
        """Nothing waits yet.

        Args:
            database: where the plans are by which reports are parsed.
            max_pending_bytes: of all reports that are not parsed yet; a single call may have more.
        """
        self._database = database
        self._contexts = JobContexts()
        self._max_pending_bytes = max_pending_bytes
        self._waiting: deque[_Call] = deque()
        #: Of a batch that failed.
        self._to_parse_alone: deque[_Call] = deque()
        #: Of calls that wait, and of those that are being parsed.
        self._pending_bytes = 0
        self._running = 0

    async def parse(self, reports: Sequence[IncomingReport]) -> list[ParsedReport]:
        """Return the reports of a call, parsed, in their order; cancelling it cancels no other's.

        Raises:
            FarmBusy: the database did not return their plans, or too much waits to be parsed.
        """
        size_bytes = sum(len(report.body) for report in reports)
        if self._pending_bytes and self._pending_bytes + size_bytes > self._max_pending_bytes:
            raise FarmBusy(
                "more waits to be parsed than the farm keeps in memory", hint="send it again in a moment"
            )
        parsed: asyncio.Future[list[ParsedReport]] = asyncio.get_running_loop().create_future()
        self._pending_bytes += size_bytes
        self._waiting.append(_Call(reports=reports, size_bytes=size_bytes, parsed=parsed))
        self._begin()
        return await parsed

    def _begin(self) -> None:
        while self._running < PARSERS and (batch := self._take_batch()):
            self._running += 1
            reports = [report for call in batch for report in call.reports]
            done = asyncio.get_running_loop().run_in_executor(None, self._parse, reports)
            done.add_done_callback(partial(self._finish, batch))

    def _take_batch(self) -> list[_Call]:
        if self._to_parse_alone:
            return [self._to_parse_alone.popleft()]
        batch: list[_Call] = []
        size_bytes = 0
        while self._waiting:
            size_bytes += self._waiting[0].size_bytes
            if batch and size_bytes > _MAX_BATCH_BYTES:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _parse(self, reports: Sequence[IncomingReport]) -> list[ParsedReport]:
        subjects = self._database.read(report_subjects, reports, self._contexts)
        return [parse(report, subject) for report, subject in zip(reports, subjects, strict=True)]

    def _finish(self, batch: Sequence[_Call], done: asyncio.Future[list[ParsedReport]]) -> None:
        self._running -= 1
        error = done.exception()
        if error is not None and len(batch) > 1:
            # What one call brought fails no other.
            self._to_parse_alone += batch
        else:
            parsed = iter([] if error else done.result())
            for call in batch:
                self._pending_bytes -= call.size_bytes
                own = list(islice(parsed, len(call.reports)))
                if call.parsed.cancelled():
                    continue
                call.parsed.set_result(own) if error is None else call.parsed.set_exception(error)
        self._begin()
