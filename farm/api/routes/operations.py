"""Routes for events, listed or followed, and alarms."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from farm.api.context import Context, Farm
from farm.api.http.authorization import Operator, Viewer, as_caller
from farm.api.http.past_times import past_time
from farm.core.errors import FarmBusy
from farm.core.operations.alarm import Alarm
from farm.services.operations.alarms import MOST_ALARMS, clear_by_operator, list_alarms
from farm.services.operations.events import EventQuery, event_filter, last_page, next_page
from farm.store.operations.event_log import EventFilter
from farm.store.operations.event_watermark import EventWatermark, event_watermark, unfinished_writers
from farm.wire.base import Count
from farm.wire.documents.operations import AlarmView, ClearRequest, EventPage

router = APIRouter(prefix="/api/v1")

MAX_WAIT_S = 30.0
MAX_EVENTS = 1000
#: Greatest delay of changes by another process, and of those without a notification.
_POLL_EVERY_S = 1.0
#: Pause that joins many changes into one query.
_BATCH_PAUSE_S = 0.05
#: Transactions take a few milliseconds; one that hangs delays only clients that follow events.
_SETTLE_EVERY_S, _MAX_SETTLE_EVERY_S = 0.01, 0.25
_SETTLE_FOR_S = 2.0

Word = Annotated[str | None, Query(max_length=160)]


@router.get("/events")
async def get_events(
    farm: Farm,
    caller: Viewer,
    after: Count | None = None,
    wait_s: Annotated[float, Query(ge=0, le=MAX_WAIT_S)] = 0.0,
    limit: Annotated[int, Query(ge=1, le=MAX_EVENTS)] = 100,
    subject: Word = None,
    actor: Word = None,
    kind: Word = None,
    since_s: Annotated[int | None, Query(ge=0, le=2**31)] = None,
) -> EventPage:
    """Return the newest events, or those after one, which are waited for up to `wait_s`."""
    query = EventQuery(subject=subject, actor=actor, kind=kind, since_s=since_s)
    filters = await farm.database.read_async(farm.bind(event_filter), query)
    deadline = asyncio.get_running_loop().time() + wait_s
    if after is None:
        until = await _wait_for_watermark(farm, deadline)
        if until is None:
            raise FarmBusy("a transaction that writes events does not end", hint="try again in a moment")
        return await farm.database.read_async(last_page, filters, until=until, limit=limit)
    with farm.held_exchanges.subscribe_viewer() as changed:
        return await _wait_for_events(farm, filters, after, limit, changed, deadline)


async def _wait_for_events(
    farm: Context, filters: EventFilter, after: int, limit: int, changed: asyncio.Event, deadline: float
) -> EventPage:
    """Query after each change, until there are events or the time is over."""
    while True:
        changed.clear()
        until = await _wait_for_watermark(farm, deadline)
        if until is not None and until > after:
            page = await farm.database.read_async(next_page, filters, after=after, until=until, limit=limit)
            if page.events:
                return page
            after = page.next
        if farm.held_exchanges.closed or not await _wait_for_change(changed, deadline):
            return EventPage(events=(), next=after)


async def _wait_for_watermark(farm: Context, deadline: float) -> int | None:
    """Return the id up to which no event can come any more; None where that is not known soon."""
    loop = asyncio.get_running_loop()
    deadline = max(deadline, loop.time() + _SETTLE_FOR_S)
    watermark: EventWatermark = await farm.database.read_async(event_watermark)
    writers, pause_s = watermark.writers, _SETTLE_EVERY_S
    while writers:
        if loop.time() >= deadline:
            return None
        # Many clients that wait for one long transaction must not keep others from reading.
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _MAX_SETTLE_EVERY_S)
        writers = await farm.database.read_async(unfinished_writers, writers)
    return watermark.event_id


async def _wait_for_change(changed: asyncio.Event, deadline: float) -> bool:
    """Wait for a change, or for the next query; False when the time is over first."""
    loop = asyncio.get_running_loop()
    if loop.time() >= deadline:
        return False
    try:
        async with asyncio.timeout_at(min(deadline, loop.time() + _POLL_EVERY_S)):
            await changed.wait()
            await asyncio.sleep(_BATCH_PAUSE_S)
    except TimeoutError:
        pass
    return True


@router.get("/alarms")
async def get_alarms(
    _: Viewer,
    farm: Farm,
    cleared: Annotated[bool, Query(description="The newest, cleared ones too.")] = False,
    since: datetime | None = None,
    limit: Annotated[int | None, Query(ge=1, le=MOST_ALARMS)] = None,
) -> list[AlarmView]:
    """Return the open alarms, the oldest first; with `cleared` the newest of all, 200 without a limit."""
    begin = past_time("since", since, now=farm.clock.now())
    return await farm.database.read_async(list_alarms, cleared=cleared, since=begin, limit=limit)


@router.post("/alarms/{alarm_id}/clear")
async def post_clear(alarm_id: Count, request: ClearRequest, caller: Operator, farm: Farm) -> Alarm:
    """Clear an alarm; where its cause lasts, it is raised again after a day."""
    return await farm.change(clear_by_operator, alarm_id, as_caller(caller, request))
