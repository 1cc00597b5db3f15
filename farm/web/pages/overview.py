"""The overview: the queue, devices by state, throughput, alarms, and what changed since yesterday."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from farm.api.context import Context, Farm
from farm.api.http.authorization import Viewer
from farm.core.jobs.job import JobEvent
from farm.database.transaction import Tx
from farm.presentation.changes import change_row
from farm.presentation.device_state import device_groups, find_remedy, may_need_operator
from farm.services.devices.views import first_devices, fleet_status, views_of
from farm.services.matrices.views import list_matrix_lines
from farm.services.operations.alarms import list_alarms
from farm.services.results.history.changes import list_changes
from farm.store.jobs.open_work import count_queued, count_running
from farm.store.operations.alarms import count_open
from farm.store.operations.recent_events import count_between
from farm.web.charts.bars import bar_chart
from farm.web.http.csv_response import columns_of, csv_table_response
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import Load, render_page

router = APIRouter(route_class=PageRoute)

#: Matrices, alarms and changes that are shown, and on a wall.
_ROWS = (8, 5, 5)
_ROWS_ON_WALL = (4, 3, 3)
_HOURS = 24
#: Devices of which is said what an operator can do.
_REMEDIES = 3


@router.get("/")
async def get_overview(request: Request, caller: Viewer, farm: Farm, part: str | None = None) -> Response:
    """Show the farm at a glance."""
    parts = _parts(farm, _ROWS)
    return await render_page(request, "overview", caller=caller, part=part, parts=parts, title="Overview")


@router.get("/wall")
async def get_wall(request: Request, caller: Viewer, farm: Farm, part: str | None = None) -> Response:
    """Show the same on a screen on the wall: large, live, and without anything to press."""
    parts = _parts(farm, _ROWS_ON_WALL)
    return await render_page(
        request, "overview", page="wall", caller=caller, part=part, parts=parts, title="Wall", is_wall=True
    )


@router.get("/throughput.csv")
async def get_throughput_csv(_: Viewer, farm: Farm) -> Response:
    """Return the number of jobs that finished in each of the last hours."""
    counts = await farm.database.read_async(farm.bind(_finished_by_hour))
    hours = [_Hour(began_at=at, finished_jobs=count) for at, count in counts]
    return await csv_table_response("throughput", hours, columns_of("began_at", "finished_jobs"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hour:
    """The throughput of one hour."""

    began_at: datetime
    finished_jobs: int


def _finished_by_hour(tx: Tx) -> list[tuple[datetime, int]]:
    begin = tx.now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=_HOURS - 1)
    hours = [begin + timedelta(hours=hour) for hour in range(_HOURS)]
    return list(zip(hours, count_between(tx.connection, JobEvent.FINISHED, hours), strict=True))


def _parts(farm: Context, rows: tuple[int, int, int]) -> Mapping[str, Load]:
    """Return how to load what the parts of the overview show."""
    now, (matrices_shown, alarms_shown, changes_shown) = farm.clock.now(), rows

    def work(tx: Tx) -> Mapping[str, Any]:
        matrices = list_matrix_lines(tx.connection, farm.counted_matrices, limit=matrices_shown)
        return {
            "matrices": matrices,
            "queued": count_queued(tx.connection),
            "running": count_running(tx.connection),
        }

    def throughput(tx: Tx) -> Mapping[str, Any]:
        return {"hours": bar_chart(_finished_by_hour(tx))}

    def devices(tx: Tx) -> Mapping[str, Any]:
        fleet = fleet_status(tx.connection)
        ill = [group for group in fleet if may_need_operator(group)]
        views = views_of(tx.connection, first_devices(tx.connection, ill, limit=_REMEDIES))
        remedies = [remedy for view in views if (remedy := find_remedy(view))]
        return {
            "devices": sum(group.alike.count for group in fleet),
            "devices_by_state": device_groups((group, group.alike.count) for group in fleet),
            "remedies": remedies,
            "further_remedies": max(sum(group.alike.count for group in ill) - _REMEDIES, 0),
        }

    def alarms(tx: Tx) -> Mapping[str, Any]:
        listed = list_alarms(tx.connection, limit=alarms_shown)
        return {"alarms": listed, "further_alarms": count_open(tx.connection) - len(listed)}

    def changes(tx: Tx) -> Mapping[str, Any]:
        found = list_changes(tx.connection, since=now - timedelta(days=1), all=True, limit=changes_shown)
        return {"changes": [(change, change_row(change)) for change in found]}

    return {"work": work, "throughput": throughput, "devices": devices, "alarms": alarms, "changes": changes}
