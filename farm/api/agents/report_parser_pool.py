"""Large reports are read on threads of their own, a few at a time, before their transactions begin."""

import asyncio

import structlog

from farm.database.engine import Database
from farm.services.results.evaluation import ReceivedReport
from farm.services.results.preparse import LARGE_BYTES, find_parse_context, preparse

#: Threads share one interpreter: more of them would only slow each other, and everybody else.
_MAX_PARSERS = 2
#: What waits to be read is in memory. A report beyond it is read in its transaction.
_MAX_PENDING_BYTES = 128 * 1024 * 1024
_log = structlog.get_logger(__name__)


class ReportParserPool:
    """Reads what would keep a transaction open for seconds: megabytes of a driver's log."""

    def __init__(self, database: Database, *, max_pending_bytes: int = _MAX_PENDING_BYTES) -> None:
        """Nothing is read yet.

        Args:
            database: where the plans are by which reports are read.
            max_pending_bytes: of all reports that are not read yet.
        """
        self._database = database
        self._max_pending_bytes = max_pending_bytes
        self._waiting_bytes = 0
        self._turns = asyncio.Semaphore(_MAX_PARSERS)

    async def read(self, arrived: ReceivedReport) -> ReceivedReport:
        """A report with what it says; as it came where it is small, or there is nothing to read it for.

        Raises:
            FarmBusy: the database did not say in time what it is of.
        """
        size_bytes = len(arrived.body)
        if size_bytes < LARGE_BYTES or self._waiting_bytes + size_bytes > self._max_pending_bytes:
            return arrived
        self._waiting_bytes += size_bytes
        try:
            async with self._turns:
                return await self._read(arrived)
        finally:
            self._waiting_bytes -= size_bytes

    async def _read(self, arrived: ReceivedReport) -> ReceivedReport:
        subject = await self._database.read_async(find_parse_context, arrived)
        if subject is None:
            return arrived
        began_s = asyncio.get_running_loop().time()
        read = await asyncio.to_thread(preparse, arrived, subject)
        _log.info(
            "large_report_read",
            attempt_id=arrived.attempt_id,
            size_bytes=len(arrived.body),
            took_s=round(asyncio.get_running_loop().time() - began_s, 3),
        )
        return read
