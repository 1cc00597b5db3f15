"""Record of refused callers in the event log, limited in rate."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import structlog

from farm.clock import Clock
from farm.core.errors import AuthError, FarmError, Forbidden
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.services.access.refused_requests import RECORD_EVERY, record_caller_refusal

_log = structlog.get_logger(__name__)


class RefusalLog:
    """The time each caller was last recorded.

    Invariant: callers are names with a token, and two for all others.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._told_at_by_actor: dict[str, datetime] = {}

    @asynccontextmanager
    async def telling(self, actor: str) -> AsyncIterator[None]:
        """Record a refusal that the block raises under this name; it is raised to the caller, too."""
        try:
            yield
        except (AuthError, Forbidden) as refusal:
            await self.tell(actor, refusal.message)
            raise

    async def tell(self, actor: str, cause: str) -> None:
        """Record that a caller was refused, unless that was recorded a moment ago or the database fails."""
        before, now = self._told_at_by_actor.get(actor), self._clock.now()
        if before is not None and now - before < RECORD_EVERY:
            return
        self._told_at_by_actor[actor] = now
        try:
            await self._database.write_async(bind_tx(record_caller_refusal, now=now, actor=actor), cause)
        except FarmError as error:
            # The caller gets the refusal, not this error.
            _log.warning("refusal_not_recorded", actor=actor, code=error.code, reason=error.message)
