"""The overview: the queue, devices by state, throughput, alarms, and what changed since yesterday."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import DeviceId
from farm.core.jobs.job import JobEvent, JobState
from farm.presentation.device_state import device_groups, find_remedy
from farm.services.devices.views import list_device_views
from farm.services.matrices.views import list_matrix_summaries
from farm.services.operations.alarms import list_alarms
from farm.store.operations.recent_events import count_between
from farm.web.charts.bars import bar_chart
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import MAX_LIST_PAGE
from farm.wire.documents.matrices.matrices import MatrixSummary

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
        return {"matrices": matrices, "queue": _queue(matrices)}

    async def throughput() -> Mapping[str, Any]:
        begin = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=_HOURS - 1)
        hours = [begin + timedelta(hours=hour) for hour in range(_HOURS)]
        counts = await farm.database.read_async(count_between, JobEvent.FINISHED, hours)
        return {"hours": bar_chart(list(zip(hours, counts, strict=True)))}

    async def devices() -> Mapping[str, Any]:
        views = await farm.database.read_async(list_device_views, after=DeviceId(""), limit=MAX_LIST_PAGE)
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


def _queue(matrices: Sequence[MatrixSummary]) -> Mapping[str, int]:
    jobs = Counter[str]()
    for matrix in matrices:
        jobs.update(matrix.jobs_by_outcome)
    return {"queued": jobs[JobState.QUEUED], "active": jobs[JobState.ACTIVE]}
