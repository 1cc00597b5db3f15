"""Speedups as a page: a forest plot for each device and model, with its table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import MatrixId
from farm.core.errors import InvalidInput
from farm.presentation.labels import device_name, short_labels
from farm.presentation.speedup_notes import LEGEND, discovered_rows, notes
from farm.presentation.text import past_moment
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.speedups import PAGE, list_speedups
from farm.web.charts.forest import Forest, forest_plot
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import Count
from farm.wire.documents.matrices.matrices import SpeedupView

router = APIRouter(route_class=PageRoute)

#: The browser wraps notes.
_NOTE_WIDTH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupBlock:
    """The comparisons of one model on one device."""

    device: str
    first: SpeedupView
    rows: Sequence[tuple[str, SpeedupView]]
    has_one_baseline: bool
    forest: Forest
    notes: Sequence[str]


def speedup_blocks(views: Sequence[SpeedupView]) -> list[SpeedupBlock]:
    """Return comparisons by device, model, harness and matrix, in that order."""

    def key(view: SpeedupView) -> tuple[str, str, str, int]:
        return view.device_id, view.model or "", view.harness, view.matrix_id

    blocks = []
    for _, group in groupby(sorted(views, key=lambda view: (*key(view), view.cell_id)), key=key):
        rows = list(group)
        names = short_labels(label for view in rows for label in (view.candidate, view.baseline))
        short = [
            view.model_copy(update={"candidate": names[view.candidate], "baseline": names[view.baseline]})
            for view in rows
        ]
        baselines = {view.baseline for view in short}
        blocks.append(
            SpeedupBlock(
                device=device_name(rows[0]),
                first=short[0],
                rows=[(_row_name(view, with_baseline=len(baselines) > 1), view) for view in short],
                has_one_baseline=len(baselines) == 1,
                forest=forest_plot(short),
                notes=list(notes(short, width=_NOTE_WIDTH)),
            )
        )
    return blocks


def _row_name(view: SpeedupView, *, with_baseline: bool) -> str:
    name = view.candidate.removesuffix(" (A/A)") + (" (A/A)" if view.aa else "")
    return f"{name} vs {view.baseline}" if with_baseline else name


@router.get("/speedups")
async def get_speedups(
    request: Request,
    caller: Viewer,
    farm: Farm,
    part: str | None = None,
    matrix: Count | None = None,
    device: Annotated[str, Query(max_length=128)] = "",
    model: Annotated[str, Query(max_length=128)] = "",
    since: Annotated[str, Query(max_length=40)] = "",
    at: Annotated[str, Query(max_length=40)] = "",
    after: Count | None = None,
) -> Response:
    """Show the comparisons of a matrix, or the newest of each pair."""
    begin, known = past_moment(since or None, option="since"), past_moment(at or None, option="at")
    if matrix is not None and begin is not None:
        raise InvalidInput("since: goes with the comparisons of all matrices", hint="leave one of them out")

    async def blocks() -> Mapping[str, Any]:
        filters: dict[str, Any] = {
            "at": known,
            "device": device or None,
            "model": model or None,
            "across_controls": False,
            "after": after,
            "limit": PAGE,
        }
        if matrix is None:
            views = await farm.database.read_async(list_latest_speedups, since=begin, **filters)
        else:
            views = await farm.database.read_async(list_speedups, matrix_id=MatrixId(matrix), **filters)
        return {
            "blocks": speedup_blocks(views),
            "discoveries": discovered_rows(views),
            "next": views[-1].cell_id if len(views) == PAGE else None,
        }

    return await render_page(
        request,
        "speedups",
        caller=caller,
        part=part,
        parts={"blocks": blocks},
        title=f"Speedups of matrix {matrix}" if matrix is not None else "Speedups",
        matrix=matrix,
        device=device,
        model=model,
        since=since,
        at=at,
        legend=LEGEND,
    )
