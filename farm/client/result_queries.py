"""Questions over results, by the connection of a client."""

from collections.abc import Iterator
from datetime import datetime

from farm.client.connection import FarmConnection
from farm.core.base.ids import MatrixId
from farm.core.results.history.recorded_change import ChangeCause, ChangeState
from farm.wire.documents.results.changes import MAX_CHANGES_PAGE, ChangeDetail, ChangeStateRequest, ChangeView
from farm.wire.documents.results.history import (
    MAX_HISTORY_PAGE,
    GroupBy,
    GroupSpeedupView,
    RetractPage,
    RetractRequest,
    SeriesHistory,
)
from farm.wire.documents.results.samples import SampledCell
from farm.wire.documents.results.speedups import MAX_SPEEDUPS_PAGE, SpeedupView


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
        with `at`, as known then; with `limit`, at most that many.
        """
        return self._pages(
            list[SpeedupView],
            "/speedups",
            lambda view: view.cell_id,
            limit=limit,
            max_page=MAX_SPEEDUPS_PAGE,
            matrix_id=matrix_id,
            device=device,
            model=model,
            baseline=baseline,
            candidate=candidate,
            name=name,
            mine=mine or None,
            since=time_text(since),
            at=time_text(at),
            across_controls=across_controls or None,
        )

    def history(
        self,
        *,
        device: str | None = None,
        model: str | None = None,
        harness: str | None = None,
        variant: str | None = None,
        since: datetime | None = None,
        name: str | None = None,
        mine: bool = False,
        limit: int | None = None,
    ) -> Iterator[SeriesHistory]:
        """Yield the history of every series, by device, model, harness, variant and time, page by page.

        With `name` or `mine`, only by matrices of this name or of the caller; with `limit`, of at
        most that many series.
        """
        return self._pages(
            list[SeriesHistory],
            "/history",
            lambda view: view.series_id,
            after=0,
            limit=limit,
            max_page=MAX_HISTORY_PAGE,
            device=device,
            model=model,
            harness=harness,
            variant=variant,
            since=time_text(since),
            name=name,
            mine=mine or None,
        )

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
        name: str | None = None,
        mine: bool = False,
        every: bool = False,
        limit: int | None = None,
    ) -> Iterator[ChangeView]:
        """Yield the changes that were found, those told last first; without `every`, only what is slower.

        With `name` or `mine`, only those of series that a matrix of this name or of the caller measured.
        """
        return self._pages(
            list[ChangeView],
            "/changes",
            lambda view: view.change_id,
            limit=limit,
            max_page=MAX_CHANGES_PAGE,
            device=device,
            model=model,
            cause=cause,
            state=state,
            name=name,
            mine=mine or None,
            since=time_text(since),
            all=every or None,
        )

    def change(self, change_id: int) -> ChangeDetail:
        """Return a change with its evidence."""
        return self._get(ChangeDetail, f"/changes/{change_id}")

    def set_change_state(self, change_id: int, request: ChangeStateRequest) -> ChangeView:
        """Say what a change is, for a reason."""
        return self._post(ChangeView, f"/changes/{change_id}/state", request.model_dump(mode="json"))

    def samples(self, matrix_id: MatrixId) -> Iterator[SampledCell]:
        """Yield every cell of a matrix with the packed samples of its runs, page by page."""
        path = f"/matrices/{matrix_id}/samples"
        return self._pages(list[SampledCell], path, lambda cell: cell.index, after=-1)

    def retract(self, request: RetractRequest) -> RetractPage:
        """Withdraw the next measurements for a reason, or let them count again."""
        return self._post(RetractPage, "/retractions", request.model_dump(mode="json"))


def time_text(at: datetime | None) -> str | None:
    """Return a time as a query parameter."""
    return None if at is None else at.isoformat()
