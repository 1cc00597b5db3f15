"""Prefetch of artifacts while devices are busy."""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from agents.attempts.artifact_cache import ArtifactCache
from farm.core.base.ids import Digest
from farm.core.errors import FarmError

log = structlog.get_logger(__name__)


class ArtifactPrefetcher:
    """Downloads artifacts into the host's cache, one at a time, never while that disturbs a measurement."""

    def __init__(
        self, *, artifacts: ArtifactCache, is_disturbing: Callable[[], bool], tasks: asyncio.TaskGroup
    ) -> None:
        """Start nothing yet; `is_disturbing` tells whether a measurement runs on this host's own CPU."""
        self._artifacts = artifacts
        self._is_disturbing = is_disturbing
        self._tasks = tasks
        self._fetching: asyncio.Task[None] | None = None
        #: Whether the farm's last answer named any: there is more work for this host.
        self.is_more = False

    def prefetch(self, digests: Iterable[Digest]) -> None:
        """Pin these artifacts, and fetch them unless a fetch is running; every answer repeats the list."""
        digests = tuple(digests)
        self._artifacts.pin(digests)
        self.is_more = bool(digests)
        if self._fetching is None or self._fetching.done():
            self._fetching = self._tasks.create_task(self._fetch(digests), name="prefetch")

    async def _fetch(self, digests: Iterable[Digest]) -> None:
        for digest in digests:
            if self._is_disturbing():
                return
            try:
                await self._artifacts.fetch(digest)
            except (FarmError, OSError) as error:
                # The attempt that needs it fetches it again, and reports the error.
                log.debug("prefetch_failed", digest=digest, reason=str(error))
