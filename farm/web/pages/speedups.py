"""Speedups as a page: a forest plot for each device and model, with its table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import CellId, MatrixId
from farm.core.errors import InvalidInput
from farm.core.results.history.chosen_labels import PairChoice
from farm.database.transaction import Tx
from farm.presentation.labels import device_name
from farm.presentation.pivot import pivots
from farm.presentation.speedup_notes import LEGEND, discovered_rows
from farm.presentation.text import past_moment
from farm.services.matrices.views import first_page_size
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.speedups import PAGE, list_speedups
from farm.store.matrices.matrices import get_matrix
from farm.store.matrices.search import MatrixFilter
from farm.web.charts.forest_blocks import speedup_blocks
from farm.web.http.csv_response import columns_of, csv_response
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import Count
from farm.wire.documents.matrices.matrices import SpeedupView

router = APIRouter(route_class=PageRoute)

Label = Annotated[str, Query(max_length=256)]

#: Rows of a page at most.
_ROWS = 500
#: The same, one below the other, of all devices and matrices: no one reads more at once, and each is pooled
#: over up to twenty matrices.
_ROWS_OF_ALL = 60
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
    baseline: Label = "",
    candidate: Label = "",
    name: Label = "",
    mine: bool = False,
    pivot: bool = False,
    after: Count | None = None,
) -> Response:
    """Show the comparisons of a matrix, or the newest of each pair, by device or as a pivot."""
    choice = _choice(baseline, candidate)
    which = _which(matrix, name, caller.actor if mine else None)
    load = _pages(matrix, choice, which, device=device, model=model, since=since, at=at)
    size = _ROWS if matrix is not None or device or pivot else _ROWS_OF_ALL

    def shown(tx: Tx) -> tuple[Sequence[SpeedupView], Mapping[str, Any]]:
        # One more than fits tells whether there is another page.
        views = load(tx, None if after is None else CellId(after), size + 1)
        fits = size
        if matrix is not None and views and len(views) == _most_at_once(tx, MatrixId(matrix)):
            fits = min(size, len(views))
            views = [*views, *load(tx, views[-1].cell_id, 1)]
        return _page_of(views, fits)

    def blocks(tx: Tx) -> Mapping[str, Any]:
        views, more = shown(tx)
        return {"blocks": speedup_blocks(views), "discoveries": discovered_rows(views), **more}

    def table(tx: Tx) -> Mapping[str, Any]:
        views, more = shown(tx)
        return {"pivots": list(pivots(views)), **more}

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
        baseline=baseline,
        candidate=candidate,
        name=name,
        mine=mine,
        pivot=pivot,
        legend=LEGEND,
    )


@router.get("/speedups.csv")
async def get_speedups_csv(
    caller: Viewer,
    farm: Farm,
    matrix: Count | None = None,
    device: Annotated[str, Query(max_length=128)] = "",
    model: Annotated[str, Query(max_length=128)] = "",
    since: Annotated[str, Query(max_length=40)] = "",
    at: Annotated[str, Query(max_length=40)] = "",
    baseline: Label = "",
    candidate: Label = "",
    name: Label = "",
    mine: bool = False,
) -> Response:
    """Return the comparisons with their numbers in full."""
    choice = _choice(baseline, candidate)
    which = _which(matrix, name, caller.actor if mine else None)
    load = _pages(matrix, choice, which, device=device, model=model, since=since, at=at)

    async def page(last: SpeedupView | None) -> list[SpeedupView]:
        behind = None if last is None else last.cell_id
        return await farm.database.read_async(farm.bind(load), behind, PAGE)

    name = "speedups" if matrix is None else f"speedups-{matrix}"
    return await csv_response(name, page, columns_of(*_CSV_COLUMNS))


def _choice(baseline: str, candidate: str) -> PairChoice | None:
    """Return the pairs that are asked for; None: those that were planned."""
    if not (baseline or candidate):
        return None
    return PairChoice(baseline=baseline or None, candidate=candidate or None)


def _which(matrix: int | None, name: str, submitted_by: str | None) -> MatrixFilter | None:
    """Return which matrices count; None: all.

    Raises:
        InvalidInput: a matrix is given, too.
    """
    if not (name or submitted_by):
        return None
    if matrix is not None:
        raise InvalidInput("name and mine: go with all matrices, not with one", hint="leave them out")
    return MatrixFilter(name=name or None, submitted_by=submitted_by)


def _pages(
    matrix: int | None,
    choice: PairChoice | None,
    which: MatrixFilter | None,
    *,
    device: str,
    model: str,
    since: str,
    at: str,
) -> Callable[[Tx, CellId | None, int], list[SpeedupView]]:
    """Return the function that reads comparisons behind a cell, so many at most.

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
        "choice": choice,
    }

    def page(tx: Tx, after: CellId | None, limit: int) -> list[SpeedupView]:
        if matrix is None:
            return list_latest_speedups(
                tx.connection, which=which, since=begin, after=after, limit=limit, **filters
            )
        return list_speedups(tx.connection, matrix_id=MatrixId(matrix), after=after, limit=limit, **filters)

    return page


def _most_at_once(tx: Tx, matrix_id: MatrixId) -> int:
    """Return how many comparisons of a matrix are read at once at most."""
    return first_page_size(get_matrix(tx.connection, matrix_id))


def _page_of(views: Sequence[SpeedupView], size: int) -> tuple[Sequence[SpeedupView], Mapping[str, Any]]:
    """Return the comparisons of a page, and what it says of those that are left.

    A page ends with the last comparison of a device: its A/A pair is judged and drawn with its candidates.
    Where those of the first device alone are more than fit, the page says that they go on.
    """
    if len(views) <= size:
        return views, {"next": None, "rows": len(views), "cut": None}
    ends = (end for end in range(size, 0, -1) if views[end].device_id != views[end - 1].device_id)
    end = next(ends, None)
    shown = views[: end or size]
    cut = None if end is not None else device_name(shown[-1])
    return shown, {"next": shown[-1].cell_id, "rows": len(shown), "cut": cut}
