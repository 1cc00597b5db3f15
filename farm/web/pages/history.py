"""Pages of what changed over time: the trends of series, and the changes that the farm found."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import SeriesId
from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput
from farm.core.results.history.recorded_change import ChangeCause, ChangeState
from farm.database.transaction import Tx
from farm.presentation.changes import (
    change_fields,
    change_row,
    series_speedups,
    series_times,
)
from farm.presentation.labels import device_name
from farm.presentation.trends import csv_lines
from farm.services.results.history.changes import change_detail, list_changes
from farm.services.results.history.trends import has_histories, list_histories
from farm.store.results.interchange.external_results import has_external_results
from farm.web.charts.series_trends import series_trends
from farm.web.http.csv_response import csv_response
from farm.web.http.filters import LabelText, Typed, TypedFilter
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import Count
from farm.wire.documents.results.history import MAX_HISTORY_PAGE, SeriesHistory

router = APIRouter(route_class=PageRoute)

E = TypeVar("E", bound=StrEnum)

_SERIES = 12
_CHANGES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFilter:
    """The filters of trends, as they were typed; empty ones do not restrict."""

    model: str
    device: str
    harness: str
    variant: str
    typed: TypedFilter

    def page(self, tx: Tx, *, after: SeriesId | None, limit: int = MAX_HISTORY_PAGE) -> list[SeriesHistory]:
        """Return the histories of so many series behind one."""
        return list_histories(tx.connection, after=after, limit=limit, **self._filters())

    def has_more(self, tx: Tx, *, after: SeriesId) -> bool:
        """Tell whether there are histories behind a series."""
        return has_histories(tx.connection, after=after, **self._filters())

    def _filters(self) -> dict[str, Any]:
        return {
            "device": self.device or None,
            "model": self.model or None,
            "harness": self.harness or None,
            "variant": self.variant or None,
            "since": self.typed.begin,
            "which": self.typed.of_matrices,
        }


async def _series_filter(
    typed: Typed,
    model: LabelText = "",
    device: LabelText = "",
    harness: LabelText = "",
    variant: LabelText = "",
) -> SeriesFilter:
    return SeriesFilter(model=model, device=device, harness=harness, variant=variant, typed=typed)


WantedSeries = Annotated[SeriesFilter, Depends(_series_filter)]


@router.get("/history")
async def get_history(
    request: Request, caller: Viewer, wanted: WantedSeries, part: str | None = None, after: Count = 0
) -> Response:
    """Show the trend of each series: the paired ratio, and beside it the absolute time."""

    def trends(tx: Tx) -> Mapping[str, Any]:
        shown = wanted.page(tx, after=SeriesId(after), limit=_SERIES)
        last = shown[-1].series_id if shown else None
        return {
            "trends": series_trends(shown),
            "next": last if last is not None and wanted.has_more(tx, after=last) else None,
            "has_others": bool(wanted.model) and has_external_results(tx.connection, model=wanted.model),
        }

    return await render_page(
        request,
        "history",
        caller=caller,
        part=part,
        parts={"trends": trends},
        title="History",
        model=wanted.model,
        device=wanted.device,
        harness=wanted.harness,
        variant=wanted.variant,
        since=wanted.typed.since,
        name=wanted.typed.name,
        mine=wanted.typed.mine,
    )


@router.get("/history.csv")
async def get_history_csv(_: Viewer, farm: Farm, wanted: WantedSeries) -> Response:
    """Return the points of the series, as `farm history --csv` prints them."""

    async def page(last: SeriesHistory | None) -> list[SeriesHistory]:
        after = None if last is None else last.series_id
        return await farm.database.read_async(farm.bind(wanted.page), after=after)

    return await csv_response("history", page, csv_lines)


@router.get("/changes")
async def get_changes(
    request: Request,
    caller: Viewer,
    typed: Typed,
    part: str | None = None,
    model: LabelText = "",
    device: LabelText = "",
    cause: LabelText = "",
    state: LabelText = "",
    all: bool = False,
    after: Count | None = None,
) -> Response:
    """Show what became slower, or every change: since when, by how much, where, and because of what."""

    def rows(tx: Tx) -> Mapping[str, Any]:
        changes = list_changes(
            tx.connection,
            since=typed.begin,
            model=model or None,
            device=device or None,
            cause=_chosen(ChangeCause, cause, "cause"),
            state=_chosen(ChangeState, state, "state"),
            which=typed.of_matrices,
            all=all,
            after=after,
            limit=_CHANGES,
        )
        return {
            "changes": [(change, change_row(change)) for change in changes],
            "next": changes[-1].change_id if len(changes) == _CHANGES else None,
        }

    return await render_page(
        request,
        "history/changes",
        caller=caller,
        part=part,
        parts={"rows": rows},
        title="Changes" if all else "Regressions",
        since=typed.since,
        model=model,
        device=device,
        cause=cause,
        causes=[*ChangeCause],
        state=state,
        states=[*ChangeState],
        name=typed.name,
        mine=typed.mine,
        all=all,
    )


def _chosen(kind: type[E], text: str, name: str) -> E | None:
    """Return the value that a filter names; None without one.

    Raises:
        InvalidInput: there is no such value.
    """
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(f"{name}: there is no `{text}`", hint=name_hint(text, [*kind])) from None


@router.get("/changes/{change_id}")
async def get_change(request: Request, change_id: Count, caller: Viewer, part: str | None = None) -> Response:
    """Show the evidence of a change."""

    def evidence(tx: Tx) -> Mapping[str, Any]:
        detail = change_detail(tx.connection, change_id)
        series = [
            {
                "view": view,
                "device": device_name(view),
                "times": series_times(view),
                "speedups": series_speedups(view),
            }
            for view in detail.evidence
        ]
        return {"detail": detail, "fields": change_fields(detail), "evidence": series}

    return await render_page(
        request,
        "history/change",
        caller=caller,
        part=part,
        parts={"evidence": evidence},
        title=f"Change {change_id}",
        change_id=change_id,
    )
