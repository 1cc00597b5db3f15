"""Speedups as a page: forest plots by device and model, or of one candidate over devices, with tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
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
from farm.services.results.history.group_points import NewestPoints
from farm.services.results.history.group_speedups import group_speedups
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.speedups.listing import PAGE, list_speedups
from farm.store.matrices.matrices import get_matrix
from farm.store.matrices.search import MatrixFilter, matrices_of
from farm.store.results.interchange.external_results import has_external_results
from farm.web.charts.forest_blocks import group_blocks, speedup_blocks
from farm.web.http.csv_response import columns_of, csv_response, csv_table_response
from farm.web.http.filters import LabelText, ShortText, TimeText
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import Load, render_page
from farm.wire.base import Count
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView
from farm.wire.documents.results.speedups import SpeedupView

router = APIRouter(route_class=PageRoute)


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


#: Columns of comparisons over devices.
_GROUP_COLUMNS = tuple(GroupSpeedupView.model_fields)
#: Devices, or groups of them, of one candidate on a page.
_GROUPS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The filters of an address, as they were typed; empty ones do not restrict."""

    matrix: int | None
    device: str
    model: str
    baseline: str
    candidate: str
    since: str
    at: str
    by: GroupBy | None
    #: Of matrices of this name, and of this person.
    name: str
    submitted_by: str | None

    @property
    def which(self) -> MatrixFilter | None:
        """Return which matrices count; None: all."""
        return matrices_of(name=self.name, person=self.submitted_by)

    @property
    def begin(self) -> datetime | None:
        """Return the beginning of what counts."""
        return past_moment(self.since or None, option="since")

    @property
    def known(self) -> datetime | None:
        """Return the time as of which is asked."""
        return past_moment(self.at or None, option="at")

    @property
    def choice(self) -> PairChoice | None:
        """Return which pairs are meant; None: all."""
        if not self.baseline and not self.candidate:
            return None
        return PairChoice(baseline=self.baseline or None, candidate=self.candidate or None)


async def _asked(
    caller: Viewer,
    matrix: Count | None = None,
    device: ShortText = "",
    model: ShortText = "",
    baseline: LabelText = "",
    candidate: LabelText = "",
    since: TimeText = "",
    at: TimeText = "",
    by: ShortText = "",
    name: LabelText = "",
    mine: bool = False,
) -> Asked:
    asked = Asked(
        matrix=matrix,
        device=device,
        model=model,
        baseline=baseline,
        candidate=candidate,
        since=since,
        at=at,
        by=_group_by(by),
        name=name,
        submitted_by=caller.actor if mine else None,
    )
    if matrix is not None and asked.begin is not None:
        raise InvalidInput("since: goes with the comparisons of all matrices", hint="leave one of them out")
    if matrix is not None and asked.which is not None:
        raise InvalidInput("name and mine: go with all matrices, not with one", hint="leave them out")
    if asked.by is not None and (matrix is not None or device or asked.which is not None):
        raise InvalidInput(
            "by: goes with model, baseline, candidate, since and at", hint="leave the others out"
        )
    return asked


def _group_by(text: str) -> GroupBy | None:
    # A form sends what is not chosen as an empty text.
    if not text:
        return None
    if text not in [*GroupBy]:
        raise InvalidInput(f"by: `{text}` is none of {', '.join(GroupBy)}", hint="choose one of the list")
    return GroupBy(text)


Wanted = Annotated[Asked, Depends(_asked)]


@router.get("/speedups")
async def get_speedups(
    request: Request,
    caller: Viewer,
    asked: Wanted,
    part: str | None = None,
    pivot: bool = False,
    after: Count | None = None,
) -> Response:
    """Show comparisons of a matrix, or the newest of each pair: by device, as a pivot, or over devices."""
    matrix = asked.matrix
    size = _ROWS if matrix is not None or asked.device or pivot else _ROWS_OF_ALL

    def shown(tx: Tx) -> tuple[Sequence[SpeedupView], Mapping[str, Any]]:
        # One more than fits tells whether there is another page.
        views = _page(tx, asked, None if after is None else CellId(after), size + 1)
        fits = size
        if matrix is not None and views and len(views) == _most_at_once(tx, MatrixId(matrix)):
            fits = min(size, len(views))
            views = [*views, *_page(tx, asked, views[-1].cell_id, 1)]
        return _page_of(views, fits)

    def blocks(tx: Tx) -> Mapping[str, Any]:
        views, more = shown(tx)
        return {
            "blocks": speedup_blocks(views),
            "discoveries": discovered_rows(views),
            "has_others": bool(asked.model) and has_external_results(tx.connection, model=asked.model),
            **more,
        }

    def table(tx: Tx) -> Mapping[str, Any]:
        views, more = shown(tx)
        return {"pivots": list(pivots(views)), **more}

    def groups(tx: Tx) -> Mapping[str, Any]:
        # Without a candidate, the page leads from each one to its devices.
        is_all = asked.by is GroupBy.ALL or (asked.by is GroupBy.DEVICE and not asked.candidate)
        kinds = [GroupBy.ALL] if is_all or asked.by is None else [GroupBy.ALL, asked.by]
        views = _groups(tx, asked, *kinds)
        overall, rows = views[0], views[-1]
        return {
            "groups": group_blocks(rows, overall, before=after or 0, limit=_GROUPS),
            "is_choice": is_all and asked.by is GroupBy.DEVICE,
            "limit": _GROUPS,
        }

    parts: dict[str, Load] = {"pivot": table} if pivot else {"blocks": blocks}
    return await render_page(
        request,
        "speedups",
        caller=caller,
        part=part,
        parts={"groups": groups} if asked.by is not None else parts,
        title=f"Speedups of matrix {matrix}" if matrix is not None else "Speedups",
        **asdict(asked),
        mine=asked.submitted_by is not None,
        pivot=pivot and asked.by is None,
        legend=LEGEND,
    )


@router.get("/speedups.csv")
async def get_speedups_csv(_: Viewer, farm: Farm, asked: Wanted) -> Response:
    """Return the comparisons with their numbers in full."""
    if asked.by is not None:
        by = GroupBy.ALL if asked.by is GroupBy.DEVICE and not asked.candidate else asked.by
        (views,) = await farm.database.read_async(farm.bind(_groups), asked, by)
        return await csv_table_response(f"speedups-by-{by}", views, columns_of(*_GROUP_COLUMNS))

    async def page(last: SpeedupView | None) -> list[SpeedupView]:
        behind = None if last is None else last.cell_id
        return await farm.database.read_async(farm.bind(_page), asked, behind, PAGE)

    name = "speedups" if asked.matrix is None else f"speedups-{asked.matrix}"
    return await csv_response(name, page, columns_of(*_CSV_COLUMNS))


def _page(tx: Tx, asked: Asked, after: CellId | None, limit: int) -> list[SpeedupView]:
    """Return comparisons behind a cell, so many at most."""
    filters: dict[str, Any] = {
        "at": asked.known,
        "device": asked.device or None,
        "model": asked.model or None,
        "choice": asked.choice,
        "across_controls": False,
    }
    if asked.matrix is None:
        return list_latest_speedups(
            tx.connection, which=asked.which, since=asked.begin, after=after, limit=limit, **filters
        )
    return list_speedups(tx.connection, matrix_id=MatrixId(asked.matrix), after=after, limit=limit, **filters)


def _groups(tx: Tx, asked: Asked, *kinds: GroupBy) -> list[list[GroupSpeedupView]]:
    """Return comparisons over devices for each kind of groups, all of the same points."""
    newest = NewestPoints(tx.connection, at=asked.known)
    return [
        group_speedups(
            tx.connection,
            by,
            model=asked.model or None,
            baseline=asked.baseline or None,
            candidate=asked.candidate or None,
            since=asked.begin,
            at=newest.at,
            newest=newest,
        )
        for by in kinds
    ]


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
