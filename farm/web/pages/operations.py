"""Pages of what happened: events, and alarms."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.database.transaction import Tx
from farm.presentation.text import past_moment, past_seconds
from farm.services.operations.alarms import list_alarms
from farm.services.operations.events import EventQuery, event_filter, last_page
from farm.store.operations.event_watermark import event_watermark
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import Count

router = APIRouter(route_class=PageRoute)

_EVENTS = 100

Filter = Annotated[str, Query(max_length=160)]


@router.get("/events")
async def get_events(
    request: Request,
    caller: Viewer,
    farm: Farm,
    part: str | None = None,
    subject: Filter = "",
    actor: Filter = "",
    kind: Filter = "",
    since: Annotated[str, Query(max_length=40)] = "",
    before: Count | None = None,
) -> Response:
    """Show events, the newest first."""

    def rows(tx: Tx) -> Mapping[str, Any]:
        query = EventQuery(
            subject=subject or None,
            actor=actor or None,
            kind=kind or None,
            since_s=past_seconds(since or None, option="since"),
        )
        filters = event_filter(tx, query)
        until = event_watermark(tx.connection).event_id if before is None else before - 1
        page = last_page(tx.connection, filters, until=until, limit=_EVENTS)
        events = page.events[::-1]
        return {"events": events, "next": events[-1].event_id if len(events) == _EVENTS else None}

    return await render_page(
        request,
        "operations/events",
        caller=caller,
        part=part,
        parts={"rows": rows},
        title="Events",
        subject=subject,
        actor=actor,
        kind=kind,
        since=since,
        before=before,
    )


@router.get("/alarms")
async def get_alarms(
    request: Request,
    caller: Viewer,
    part: str | None = None,
    cleared: bool = False,
    since: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """Show the open alarms, or the newest of all."""

    def rows(tx: Tx) -> Mapping[str, Any]:
        begin = past_moment(since or None, option="since")
        return {"alarms": list_alarms(tx.connection, cleared=cleared, since=begin)}

    return await render_page(
        request,
        "operations/alarms",
        caller=caller,
        part=part,
        parts={"rows": rows},
        title="Alarms",
        cleared=cleared,
        since=since,
    )
