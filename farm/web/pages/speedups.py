"""Speedups as a page: a forest plot for each device and model, with its table."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import CellId, MatrixId
from farm.core.errors import InvalidInput
from farm.database.transaction import Tx
from farm.presentation.pivot import pivots
from farm.presentation.speedup_notes import LEGEND, discovered_rows
from farm.presentation.text import past_moment
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.speedups import PAGE, list_speedups
from farm.web.charts.forest_blocks import speedup_blocks
from farm.web.http.csv_response import columns_of, csv_response
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import Count
from farm.wire.documents.matrices.matrices import SpeedupView

router = APIRouter(route_class=PageRoute)

#: Rows of a page: no one reads more at once, and each is pooled over up to twenty matrices.
_ROWS = 60
_CSV_COLUMNS = (
    "matrix_id",
    "cell_id",
    "device_id",
    "device_label",
    "device_model",
    "soc",
    "virtual",
    "model",
    "harness",
    "baseline",
    "candidate",
    "aa",
    "speedup",
    "ci_low",
    "ci_high",
    "verdict",
    "margin",
    "rounds",
    "excluded",
    "baseline_ns",
    "candidate_ns",
    "measured_until",
)


@router.get("/speedups")
async def get_speedups(
    request: Request,
    caller: Viewer,
    part: str | None = None,
    matrix: Count | None = None,
    device: Annotated[str, Query(max_length=128)] = "",
    model: Annotated[str, Query(max_length=128)] = "",
    since: Annotated[str, Query(max_length=40)] = "",
    at: Annotated[str, Query(max_length=40)] = "",
    pivot: bool = False,
    after: Count | None = None,
) -> Response:
    """Show the comparisons of a matrix, or the newest of each pair, by device or as a pivot."""
    load = _pages(matrix, device=device, model=model, since=since, at=at, limit=_ROWS)

    def blocks(tx: Tx) -> Mapping[str, Any]:
        views = load(tx, None if after is None else CellId(after))
        return {
            "blocks": speedup_blocks(views),
            "discoveries": discovered_rows(views),
            "next": views[-1].cell_id if len(views) == _ROWS else None,
            "rows": len(views),
        }

    def table(tx: Tx) -> Mapping[str, Any]:
        views = load(tx, None if after is None else CellId(after))
        return {
            "pivots": list(pivots(views)),
            "next": views[-1].cell_id if len(views) == _ROWS else None,
            "rows": len(views),
        }

    return await render_page(
        request,
        "speedups",
        caller=caller,
        part=part,
        parts={"pivot": table} if pivot else {"blocks": blocks},
        title=f"Speedups of matrix {matrix}" if matrix is not None else "Speedups",
        matrix=matrix,
        device=device,
        model=model,
        since=since,
        at=at,
        pivot=pivot,
        legend=LEGEND,
    )


@router.get("/speedups.csv")
async def get_speedups_csv(
    _: Viewer,
    farm: Farm,
    matrix: Count | None = None,
    device: Annotated[str, Query(max_length=128)] = "",
    model: Annotated[str, Query(max_length=128)] = "",
    since: Annotated[str, Query(max_length=40)] = "",
    at: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """Return the comparisons with their numbers in full."""
    load = _pages(matrix, device=device, model=model, since=since, at=at, limit=PAGE)

    async def page(last: SpeedupView | None) -> list[SpeedupView]:
        return await farm.database.read_async(farm.bind(load), None if last is None else last.cell_id)

    name = "speedups" if matrix is None else f"speedups-{matrix}"
    return await csv_response(name, page, columns_of(*_CSV_COLUMNS))


def _pages(
    matrix: int | None,
    *,
    device: str,
    model: str,
    since: str,
    at: str,
    limit: int,
) -> Callable[[Tx, CellId | None], list[SpeedupView]]:
    """Return the function that reads a page of comparisons behind a cell.

    Raises:
        InvalidInput: a time is none, or one is given with a matrix.
    """
    begin, known = past_moment(since or None, option="since"), past_moment(at or None, option="at")
    if matrix is not None and begin is not None:
        raise InvalidInput("since: goes with the comparisons of all matrices", hint="leave one of them out")
    filters: dict[str, Any] = {
        "at": known,
        "device": device or None,
        "model": model or None,
        "across_controls": False,
        "limit": limit,
    }

    def page(tx: Tx, after: CellId | None) -> list[SpeedupView]:
        if matrix is None:
            return list_latest_speedups(tx.connection, since=begin, after=after, **filters)
        return list_speedups(tx.connection, matrix_id=MatrixId(matrix), after=after, **filters)

    return page
