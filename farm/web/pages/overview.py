"""The overview: the queue, devices by state, throughput, alarms, and what changed since yesterday."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from farm.api.context import Context, Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import DeviceId
from farm.core.jobs.job import JobEvent
from farm.presentation.device_state import device_groups, find_remedy
from farm.services.devices.views import list_device_views
from farm.services.matrices.views import list_matrix_summaries
from farm.services.operations.alarms import list_alarms
from farm.store.jobs.open_work import count_queued, count_running
from farm.store.operations.recent_events import count_between
from farm.web.charts.bars import bar_chart
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import MAX_LIST_PAGE
from farm.wire.documents.devices import DeviceView

router = APIRouter(route_class=PageRoute)

_MATRICES = 8
_ALARMS = 5
_HOURS = 24


@router.get("/")
async def get_overview(request: Request, caller: Viewer, farm: Farm, part: str | None = None) -> Response:
    """Show the farm at a glance."""
    now = farm.clock.now()

    async def work() -> Mapping[str, Any]:
        matrices = await farm.database.read_async(farm.bind(list_matrix_summaries), limit=_MATRICES)
        return {
            "matrices": matrices,
            "queued": await farm.database.read_async(count_queued),
            "running": await farm.database.read_async(count_running),
        }

    async def throughput() -> Mapping[str, Any]:
        begin = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=_HOURS - 1)
        hours = [begin + timedelta(hours=hour) for hour in range(_HOURS)]
        counts = await farm.database.read_async(count_between, JobEvent.FINISHED, hours)
        return {"hours": bar_chart(list(zip(hours, counts, strict=True)))}

    async def devices() -> Mapping[str, Any]:
        views = await _all_devices(farm)
        return {
            "devices": len(views),
            "devices_by_state": device_groups(views),
            "remedies": [remedy for view in views if (remedy := find_remedy(view))],
        }

    async def alarms() -> Mapping[str, Any]:
        listed = await farm.database.read_async(list_alarms)
        return {"alarms": listed[:_ALARMS], "further_alarms": max(len(listed) - _ALARMS, 0)}

    return await render_page(
        request,
        "overview",
        caller=caller,
        part=part,
        parts={"work": work, "throughput": throughput, "devices": devices, "alarms": alarms},
        title="Overview",
    )


async def _all_devices(farm: Context) -> list[DeviceView]:
    views: list[DeviceView] = []
    while True:
        after = views[-1].device_id if views else DeviceId("")
        page = await farm.database.read_async(list_device_views, after=after, limit=MAX_LIST_PAGE)
        views += page
        if len(page) < MAX_LIST_PAGE:
            return views
