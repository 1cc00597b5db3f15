"""Questions over results, by the connection of a client."""

from collections.abc import Iterator
from datetime import datetime

from farm.client.connection import FarmConnection, QueryValue
from farm.core.base.ids import CellId, MatrixId
from farm.core.results.history.recorded_change import ChangeCause, ChangeState
from farm.wire.documents.matrices.matrices import MAX_SPEEDUPS_PAGE, SpeedupView
from farm.wire.documents.results.changes import (
    MAX_CHANGES_PAGE,
    ChangeDetail,
    ChangeStateRequest,
    ChangeView,
)
from farm.wire.documents.results.history import (
    MAX_HISTORY_PAGE,
    GroupBy,
    GroupSpeedupView,
    RetractPage,
    RetractRequest,
    SeriesHistory,
)
from farm.wire.documents.results.samples import SampledCell


class _Left:
    """How many rows of a listing are still asked for; None: all."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit

    def page(self, most: int) -> int | None:
        """Return how many rows the next page may have; None: as many as the farm gives."""
        return None if self._left is None else min(self._left, most)

    def is_none_after(self, rows: int) -> bool:
        """Count the rows of a page; return whether no more are asked for."""
        if self._left is not None:
            self._left -= rows
        return self._left is not None and self._left <= 0


class ResultQueries(FarmConnection):
    """What a client asks of speedups, histories and retractions."""

    def speedups(
        self,
        *,
        matrix_id: MatrixId | None = None,
        device: str | None = None,
        model: str | None = None,
        baseline: str | None = None,
        candidate: str | None = None,
        name: str | None = None,
        mine: bool = False,
        across_controls: bool = False,
        since: datetime | None = None,
        at: datetime | None = None,
        limit: int | None = None,
    ) -> Iterator[SpeedupView]:
        """Yield every candidate against its baseline, filtered by matrix, device and model, page by page.

        With words of a baseline's or a candidate's label, only such pairs, planned or not; with `name` or
        `mine`, only of matrices of this name or of the caller; with `since`, only of sessions since then;
        with `at`, as known then; with `limit`, so many at most.
        """
        filters: dict[str, QueryValue] = {"matrix_id": matrix_id, "device": device, "model": model}
        filters |= {"baseline": baseline, "candidate": candidate, "name": name, "mine": mine or None}
        filters |= {"since": time_text(since), "at": time_text(at)}
        filters["across_controls"] = across_controls or None
        last: CellId | None = None
        left = _Left(limit)
        while page := self._get(
            list[SpeedupView], "/speedups", **filters, after=last, limit=left.page(MAX_SPEEDUPS_PAGE)
        ):
            # A farm of an earlier release has no pages: it returns the whole list each time.
            if page[-1].cell_id == last:
                break
            yield from page
            last = page[-1].cell_id
            if left.is_none_after(len(page)):
                break

    def history(
        self,
        *,
        device: str | None = None,
        model: str | None = None,
        harness: str | None = None,
        variant: str | None = None,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> Iterator[SeriesHistory]:
        """Yield the history of every series, by device, model, harness, variant and time, page by page.

        With `limit`, of so many series at most.
        """
        filters = {"device": device, "model": model, "harness": harness, "variant": variant}
        filters["since"] = time_text(since)
        after = 0
        left = _Left(limit)
        while page := self._get(
            list[SeriesHistory], "/history", **filters, after=after, limit=left.page(MAX_HISTORY_PAGE)
        ):
            yield from page
            after = page[-1].series_id
            if left.is_none_after(len(page)):
                break

    def group_speedups(
        self,
        by: GroupBy,
        *,
        model: str | None = None,
        baseline: str | None = None,
        candidate: str | None = None,
        since: datetime | None = None,
        at: datetime | None = None,
    ) -> list[GroupSpeedupView]:
        """Return the newest speedups over devices that have something in common; with `at`, as known then."""
        times = {"since": time_text(since), "at": time_text(at)}
        return self._get(
            list[GroupSpeedupView],
            "/speedups/groups",
            by=by,
            model=model,
            baseline=baseline,
            candidate=candidate,
            **times,
        )

    def changes(
        self,
        *,
        since: datetime | None = None,
        device: str | None = None,
        model: str | None = None,
        cause: ChangeCause | None = None,
        state: ChangeState | None = None,
        every: bool = False,
        limit: int | None = None,
    ) -> Iterator[ChangeView]:
        """Yield the changes that were found, those told last first; without `every`, only what is slower."""
        filters: dict[str, QueryValue] = {"device": device, "model": model, "cause": cause, "state": state}
        filters |= {"since": time_text(since), "all": every or None}
        after: int | None = None
        left = _Left(limit)
        while page := self._get(
            list[ChangeView], "/changes", **filters, after=after, limit=left.page(MAX_CHANGES_PAGE)
        ):
            yield from page
            after = page[-1].change_id
            if left.is_none_after(len(page)):
                break

    def change(self, change_id: int) -> ChangeDetail:
        """Return a change with its evidence."""
        return self._get(ChangeDetail, f"/changes/{change_id}")

    def set_change_state(self, change_id: int, request: ChangeStateRequest) -> ChangeView:
        """Say what a change is, for a reason."""
        return self._post(ChangeView, f"/changes/{change_id}/state", request.model_dump(mode="json"))

    def samples(self, matrix_id: MatrixId) -> Iterator[SampledCell]:
        """Yield every cell of a matrix with the packed samples of its runs, page by page."""
        after = -1
        while page := self._get(list[SampledCell], f"/matrices/{matrix_id}/samples", after=after):
            yield from page
            after = page[-1].index

    def retract(self, request: RetractRequest) -> RetractPage:
        """Withdraw the next measurements for a reason, or let them count again."""
        return self._post(RetractPage, "/retractions", request.model_dump(mode="json"))


def time_text(at: datetime | None) -> str | None:
    """Return a time as a query parameter."""
    return None if at is None else at.isoformat()
