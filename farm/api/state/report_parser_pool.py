"""A pool of threads that parses large reports before their transactions begin, a few at a time."""

import asyncio
from collections.abc import Sequence

import structlog

from farm.core.errors import FarmBusy
from farm.core.results.settle.report import IncomingReport, ParsedReport
from farm.database.engine import Database
from farm.services.results.preparse import LARGE_BYTES, parse, report_subjects

#: Threads share one interpreter: more of them would only slow each other, and all other calls.
_MAX_PARSERS = 2
#: Reports that wait to be parsed are in memory; a caller that sends more is answered with FarmBusy.
_MAX_PENDING_BYTES = 128 * 1024 * 1024
_log = structlog.get_logger(__name__)


class ReportParserPool:
    """Parses reports that would keep a transaction open: for seconds, with megabytes of a driver's log."""

    def __init__(self, database: Database, *, max_pending_bytes: int = _MAX_PENDING_BYTES) -> None:
        """Nothing is parsed yet.

        Args:
            database: where the plans are by which reports are parsed.
            max_pending_bytes: of all large reports that are not parsed yet; a single one may have more.
        """
        self._database = database
        self._max_pending_bytes = max_pending_bytes
        self._waiting_bytes = 0
        self._turns = asyncio.Semaphore(_MAX_PARSERS)

    async def parse(self, reports: Sequence[IncomingReport]) -> list[IncomingReport | ParsedReport]:
        """Parse the large ones of reports; return all in their order.

        Raises:
            FarmBusy: the database did not return their plans in time, or too much waits to be parsed.
        """
        return [
            report if len(report.body) < LARGE_BYTES else await self._parse_one(report) for report in reports
        ]

    async def _parse_one(self, report: IncomingReport) -> ParsedReport:
        size_bytes = len(report.body)
        if self._waiting_bytes and self._waiting_bytes + size_bytes > self._max_pending_bytes:
            raise FarmBusy(
                "more waits to be parsed than the farm keeps in memory", hint="send it again in a moment"
            )
        self._waiting_bytes += size_bytes
        try:
            async with self._turns:
                return await self._parse_large(report)
        finally:
            self._waiting_bytes -= size_bytes

    async def _parse_large(self, report: IncomingReport) -> ParsedReport:
        (subject,) = await self._database.peek_async(report_subjects, [report])
        began_s = asyncio.get_running_loop().time()
        parsed = await asyncio.to_thread(parse, report, subject)
        if subject is not None:
            _log.info(
                "large_report_read",
                attempt_id=report.attempt_id,
                size_bytes=len(report.body),
                took_s=round(asyncio.get_running_loop().time() - began_s, 3),
            )
        return parsed
