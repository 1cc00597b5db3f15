"""Live changes: one reader of the event log tells all open pages which of their rows changed.

A page names the keys of its rows: `devices`, `device-ID`, `matrices`, `matrix-NUMBER`, `jobs`, `alarms`,
`hosts`, `imports`, `import-NUMBER`. The answer is a stream of server-sent events, each a JSON list of the
keys that changed; the page then fetches the parts that show them. Nothing is read while no page is open.

A browser opens a connection again that was lost, and none that was refused: by a proxy while the farm starts,
or because its session has ended. Then the page says so, and tries again after half a minute.
"""

import asyncio
import contextlib
import json
import math
import time
from collections.abc import AsyncIterator, Iterable
from typing import Annotated

import structlog
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from farm.api.context import Context, Farm
from farm.api.http.authorization import Viewer
from farm.core.errors import FarmError
from farm.core.operations.event import EventSubject
from farm.store.operations.event_watermark import event_watermark
from farm.store.operations.recent_events import changed_subjects
from farm.web.http.page_route import PageRoute

_log = structlog.get_logger(__name__)

router = APIRouter(route_class=PageRoute)

#: Changes that come together are told together.
_PAUSE_S = 1.0
#: Where nothing was notified, as of the process of another farm on one database, so often.
_POLL_S = 5.0
#: Proxies end streams that are silent for a minute.
_KEEP_ALIVE_S = 25.0
_MAX_KEYS = 4000
#: Lists that show rows of a subject.
_LISTS = {
    EventSubject.DEVICE: "devices",
    EventSubject.MATRIX: "matrices",
    EventSubject.JOB: "jobs",
    EventSubject.ATTEMPT: "jobs",
    EventSubject.ALARM: "alarms",
    EventSubject.HOST: "hosts",
    EventSubject.SESSION: "hosts",
    EventSubject.INCIDENT: "hosts",
    EventSubject.STANDING_MATRIX: "matrices",
    EventSubject.PROGRAM: "programs",
    EventSubject.VARIANT: "programs",
    EventSubject.IMPORT: "imports",
}
#: What moves speedups and trends: their points have no events of their own.
_OF_POINTS = (EventSubject.JOB, EventSubject.CHANGE)
_POINTS = "points"
#: They move with each job of the farm, and their pages are among the dearest: they are told once in so long.
_POINTS_S = 10.0
#: Subjects that have a page of their own.
_WITH_PAGE = (EventSubject.DEVICE, EventSubject.MATRIX, EventSubject.HOST, EventSubject.IMPORT)


def keys_of(subjects: Iterable[tuple[EventSubject, str]]) -> frozenset[str]:
    """Return the keys of the rows that show these subjects."""
    keys = {"events"}
    for subject, subject_id in subjects:
        if subject in _OF_POINTS:
            keys.add(_POINTS)
        if subject in _LISTS:
            keys.add(_LISTS[subject])
        if subject in _WITH_PAGE:
            keys.add(f"{subject}-{subject_id}")
    return frozenset(keys)


class LiveChanges:
    """The open pages of this process, and the one task that reads the event log for them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pages: set[asyncio.Queue[frozenset[str] | None]] = set()
        self._reading: asyncio.Task[None] | None = None
        #: Whether points changed that were not told yet, and when some were told.
        self._has_points, self._points_at = False, -math.inf

    @property
    def is_reading(self) -> bool:
        """Return whether the event log is read, which it is while a page is open."""
        return self._reading is not None and not self._reading.done()

    @contextlib.asynccontextmanager
    async def subscribe(self) -> AsyncIterator[asyncio.Queue[frozenset[str] | None]]:
        """Yield a queue of the keys that change from here on; None stands for everything."""
        page: asyncio.Queue[frozenset[str] | None] = asyncio.Queue()
        after = await self._newest_event()
        self._pages.add(page)
        if not self.is_reading:
            self._reading = asyncio.create_task(self._read(after))
        try:
            yield page
        finally:
            self._pages.discard(page)
            if not self._pages and self._reading is not None:
                self._reading.cancel()
                self._reading = None

    async def _newest_event(self) -> int:
        return (await self._context.database.read_async(event_watermark)).event_id

    async def _read(self, after: int) -> None:
        held = self._context.held_exchanges
        with held.subscribe_viewer() as changed:
            while not held.closed:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await changed.wait()
                await asyncio.sleep(_PAUSE_S)
                changed.clear()
                try:
                    after = await self._tell_since(after)
                except FarmError as error:
                    # The database is busy, or away for a while: the next look tells what was missed.
                    _log.warning("live_changes_delayed", code=error.code, message=error.message)
        self._tell(frozenset())

    async def _tell_since(self, after: int) -> int:
        """Tell all pages what changed since an event; return the newest event."""
        until = await self._newest_event()
        keys: frozenset[str] | None = frozenset()
        if until > after:
            subjects = await self._context.database.read_async(changed_subjects, after=after, until=until)
            keys = None if subjects is None else keys_of(subjects)
        keys = None if keys is None else self._with_points_in_time(keys)
        if keys is None or keys:
            self._tell(keys)
        return max(until, after)

    def _with_points_in_time(self, keys: frozenset[str]) -> frozenset[str]:
        """Hold the key of points back until they may be told again."""
        now = time.monotonic()
        self._has_points |= _POINTS in keys
        if not self._has_points or now - self._points_at < _POINTS_S:
            return keys - {_POINTS}
        self._has_points, self._points_at = False, now
        return keys | {_POINTS}

    def _tell(self, keys: frozenset[str] | None) -> None:
        for page in self._pages:
            page.put_nowait(keys)


@router.get("/live")
async def get_live(
    request: Request,
    _: Viewer,
    farm: Farm,
    keys: Annotated[str, Query(max_length=64 * _MAX_KEYS)],
) -> StreamingResponse:
    """Stream which of these keys changed, until the browser or the farm ends it."""
    wanted = frozenset(keys.split()[:_MAX_KEYS])
    return StreamingResponse(
        _stream(request, farm, wanted),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(request: Request, farm: Context, wanted: frozenset[str]) -> AsyncIterator[str]:
    live: LiveChanges = live_changes(request, farm)
    async with live.subscribe() as changes:
        yield ": open\n\n"
        while not farm.held_exchanges.closed:
            try:
                async with asyncio.timeout(_KEEP_ALIVE_S):
                    changed = await changes.get()
            except TimeoutError:
                yield ": still there\n\n"
                continue
            told = sorted(wanted if changed is None else changed & wanted)
            if told:
                yield f"data: {json.dumps(told)}\n\n"


def live_changes(request: Request, farm: Context) -> LiveChanges:
    """Return the live changes of this process."""
    state = request.app.state
    if not hasattr(state, "live_changes"):
        state.live_changes = LiveChanges(farm)
    changes: LiveChanges = state.live_changes
    return changes
