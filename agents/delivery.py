"""Sends what waits in the spool until the farm has taken it, or said that it never will."""

import asyncio
from random import Random

import structlog

from agents.backoff import Backoff
from agents.durable import DiskThread
from agents.farm_api import FarmApi
from agents.sending import AT_ONCE, Sending, is_final
from agents.spool import Spool
from farm.clock import Clock
from farm.core.errors import FarmError
from farm.core.ids import AttemptId

log = structlog.get_logger(__name__)


class Delivery:
    """Delivers one report at a time for each attempt; any number of attempts at once."""

    def __init__(
        self,
        api: FarmApi,
        spool: Spool,
        disk: DiskThread,
        clock: Clock,
        random: Random,
        *,
        at_once: int = AT_ONCE,
    ) -> None:
        """`at_once`: calls on their way together; what waits for its turn goes along with the next one."""
        self._spool = spool
        self._disk = disk
        self._clock = clock
        self._random = random
        self._sending = Sending(api, spool, disk, at_once=at_once)

    async def deliver(self, attempt_id: AttemptId) -> None:
        """Send the attempt's report, always the same bytes; on return it no longer waits."""
        backoff = Backoff(self._random, first_s=0.25, cap_s=5.0)
        while True:
            try:
                return await self._deliver_now(attempt_id)
            except FarmError as error:
                log.info("report_delayed", attempt_id=attempt_id, code=error.code, reason=error.message)
                await asyncio.sleep(backoff.next_s())

    async def _deliver_now(self, attempt_id: AttemptId) -> None:
        """Raises FarmError while it waits: the farm could not be told, or it cannot be put aside."""
        try:
            answer = await self._sending.sent(attempt_id)
        except FarmError as error:
            if not is_final(error):
                raise
            await self._disk.call(self._spool.refuse, attempt_id, self._clock.now())
            log.warning("report_refused", attempt_id=attempt_id, code=error.code, reason=error.message)
        else:
            if answer is not None:
                await self._disk.call(self._spool.acknowledge, attempt_id, self._clock.now())
                log.debug("report_taken", attempt_id=attempt_id, counted=answer.counted)
