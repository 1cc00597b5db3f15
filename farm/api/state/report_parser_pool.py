"""Parse reports before their transactions begin: all that wait in one batch, on one thread.

A report whose parsing may take long is parsed in a process of its own, and only its own call waits for it.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from farm.api.state.parser_processes import ParserProcesses
from farm.core.errors import FarmBusy
from farm.core.results.settle.report import IncomingReport, ParsedReport
from farm.database.engine import Database
from farm.services.agents.pair_starts import compare_starts
from farm.services.agents.report_batch import BegunReport, begin_reports
from farm.services.results.parse import JobContexts

#: The most bytes of one batch; a larger call is parsed alone. A caller waits for all of its batch.
_MAX_BATCH_BYTES = 1024 * 1024
#: Reports that wait to be parsed are in memory; a caller that sends more is answered with FarmBusy.
_MAX_PENDING_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Call:
    reports: Sequence[IncomingReport]
    size_bytes: int
    parsed: asyncio.Future[list[ParsedReport]]


class ReportParserPool:
    """Parses the reports of calls, one batch at a time: all calls that wait when the one before is parsed.

    Two threads would take longer than one: they share an interpreter, and a batch shares its statements.
    """

    def __init__(self, database: Database, *, max_pending_bytes: int = _MAX_PENDING_BYTES) -> None:
        """Nothing waits yet.

        Args:
            database: where the plans are by which reports are parsed.
            max_pending_bytes: of all reports that are not parsed yet; a single call may have more.
        """
        self._database = database
        #: They also parse stored reports again.
        self.processes = ParserProcesses()
        self._finishing: set[asyncio.Task[None]] = set()
        self._contexts = JobContexts()
        self._max_pending_bytes = max_pending_bytes
        self._waiting: deque[_Call] = deque()
        #: Of a batch that failed.
        self._to_parse_alone: deque[_Call] = deque()
        #: Of calls that wait, and of those that are being parsed.
        self._pending_bytes = 0
        self._is_parsing = False

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

    async def aclose(self) -> None:
        """End the processes; nothing is parsed any more."""
        await asyncio.to_thread(self.processes.close)

    def _begin(self) -> None:
        if not self._is_parsing and (batch := self._take_batch()):
            self._is_parsing = True
            reports = [report for call in batch for report in call.reports]
            read = partial(self._database.read, begin_reports, reports, self._contexts)
            done = asyncio.get_running_loop().run_in_executor(None, read)
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

    def _finish(self, batch: Sequence[_Call], done: asyncio.Future[list[BegunReport]]) -> None:
        self._is_parsing = False
        error = done.exception()
        if error is not None and len(batch) > 1:
            # What one call brought fails no other.
            self._to_parse_alone += batch
        elif error is not None:
            self._answer(batch[0], error)
        else:
            begun = iter(done.result())
            for call in batch:
                self._finish_call(call, list(islice(begun, len(call.reports))))
        self._begin()

    def _finish_call(self, call: _Call, begun: Sequence[BegunReport]) -> None:
        parsed = [each for each in begun if isinstance(each, ParsedReport)]
        if len(parsed) == len(begun):
            self._answer(call, parsed)
            return
        task = asyncio.create_task(self._finish_in_processes(call, begun))
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    async def _finish_in_processes(self, call: _Call, begun: Sequence[BegunReport]) -> None:
        submitted = [
            each if isinstance(each, ParsedReport) else asyncio.wrap_future(self.processes.submit(*each))
            for each in begun
        ]
        waited = [each for each in submitted if isinstance(each, asyncio.Future)]
        try:
            finished = await self._database.read_async(compare_starts, await asyncio.gather(*waited))
        except BaseException as error:
            for future in waited:
                future.cancel()
            self._answer(call, error)
            if isinstance(error, asyncio.CancelledError):
                raise
            return
        rest = iter(finished)
        self._answer(call, [each if isinstance(each, ParsedReport) else next(rest) for each in submitted])

    def _answer(self, call: _Call, answer: list[ParsedReport] | BaseException) -> None:
        self._pending_bytes -= call.size_bytes
        if call.parsed.cancelled():
            return
        if isinstance(answer, BaseException):
            call.parsed.set_exception(answer)
        else:
            call.parsed.set_result(answer)
