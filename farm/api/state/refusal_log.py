"""Tells the log of callers who were refused, without letting a flood of them cost anything."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import structlog

from farm.core.errors import AuthError, FarmError
from farm.database.engine import Database
from farm.services.access.refused_requests import RECORD_EVERY, record_caller_refusal

_log = structlog.get_logger(__name__)


class RefusalLog:
    """When each caller was last told of. Invariant: those are names with a token, and two for all others."""

    def __init__(self) -> None:
        self._told_at_by_actor: dict[str, datetime] = {}

    @asynccontextmanager
    async def telling(self, database: Database, actor: str, *, now: datetime) -> AsyncIterator[None]:
        """Tell of who is not let in, under this name; they hear of it all the same."""
        try:
            yield
        except AuthError as refusal:
            await self.tell(database, actor, refusal.message, now=now)
            raise

    async def tell(self, database: Database, actor: str, cause: str, *, now: datetime) -> None:
        """Note that a caller was refused, unless that was told a moment ago or the database is in trouble."""
        before = self._told_at_by_actor.get(actor)
        if before is not None and now - before < RECORD_EVERY:
            return
        self._told_at_by_actor[actor] = now
        try:
            await database.write_async(record_caller_refusal, actor, cause, now=now)
        except FarmError as error:
            # The caller is to hear of the refusal, not of this.
            _log.warning("refusal_not_told", actor=actor, code=error.code, reason=error.message)
