"""Sends what waits in the spool until the farm has taken it, or said that it never will."""

import asyncio
from random import Random

import structlog

from agents.backoff import Backoff
from agents.durable import DiskThread
from agents.farm_api import FarmApi
from agents.spool import Spool
from farm.clock import Clock
from farm.core.errors import AuthError, Blame, FarmError
from farm.core.ids import AttemptId
from farm.wire.agent import ReportAnswer
from farm.wire.refusal import ProblemError

log = structlog.get_logger(__name__)

#: Reports on their way at once: after the farm was away there may be hundreds, of megabytes each.
AT_ONCE = 4


class Delivery:
    """Delivers one report at a time for each attempt; any number of attempts at once."""

    def __init__(self, api: FarmApi, spool: Spool, disk: DiskThread, clock: Clock, random: Random) -> None:
        self._api = api
        self._spool = spool
        self._disk = disk
        self._clock = clock
        self._random = random
        self._sending = asyncio.Semaphore(AT_ONCE)

    async def deliver(self, attempt_id: AttemptId) -> None:
        """Send the attempt's report, always the same bytes; on return it no longer waits."""
        backoff = Backoff(self._random, first_s=0.25, cap_s=5.0)
        while True:
            try:
                answer = await self._sent(attempt_id)
            except FarmError as error:
                if is_final(error):
                    await self._disk.call(self._spool.refuse, attempt_id, self._clock.now())
                    log.warning(
                        "report_refused", attempt_id=attempt_id, code=error.code, reason=error.message
                    )
                    return
                log.info("report_delayed", attempt_id=attempt_id, code=error.code, reason=error.message)
                await asyncio.sleep(backoff.next_s())
            else:
                if answer is not None:
                    await self._disk.call(self._spool.acknowledge, attempt_id, self._clock.now())
                    log.debug("report_taken", attempt_id=attempt_id, counted=answer.counted)
                return

    async def _sent(self, attempt_id: AttemptId) -> ReportAnswer | None:
        """The farm's answer to a report; None when none waits."""
        async with self._sending:
            body = await self._disk.call(self._spool.find, attempt_id)
            return None if body is None else await self._api.report(attempt_id, body)


def is_final(error: FarmError) -> bool:
    """Whether the farm said that it will never take a report, however often it is sent.

    Only a problem document is the farm's own word: a proxy, or whatever else is in between, says the same
    statuses. A credential that is not accepted can be replaced: the report waits for that.
    """
    is_farms_word = isinstance(error.__cause__, ProblemError)
    is_about_the_report = error.blame is Blame.USER and not error.transient
    return is_farms_word and is_about_the_report and not isinstance(error, AuthError)
