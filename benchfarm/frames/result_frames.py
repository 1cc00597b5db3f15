"""Frames of results, of histories and of changes."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from benchfarm.frames.frame import Frame, FrameColumn
from benchfarm.frames.notebook_html import changes_html, trends_html
from benchfarm.frames.setup_columns import (
    common_columns,
    device_columns,
    flag,
    integer,
    milliseconds,
    moment,
    ratio,
    series_columns,
    setup_columns,
    text,
)
from farm.core.results.history.recorded_change import ChangedPart
from farm.core.runs.measurement import CellSummary
from farm.wire.documents.results.changes import ChangeView, CommonSetup
from farm.wire.documents.results.history import HistoryPoint, SeriesHistory, SeriesSetup
from farm.wire.documents.results.imports import ExternalResultView
from farm.wire.documents.results.results import ResultView


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One session of one series."""

    series: SeriesHistory
    point: HistoryPoint


class HistoryFrame(Frame[HistoryRow]):
    """Sessions of series, one row each."""

    def __init__(self, histories: Iterable[SeriesHistory], *, as_of: datetime) -> None:
        self.histories = tuple(histories)
        rows = [
            HistoryRow(series=series, point=point) for series in self.histories for point in series.points
        ]
        super().__init__(rows, _HISTORY_COLUMNS, as_of=as_of)

    def _repr_html_(self) -> str:
        """Return the trends of the series, as the page of the farm draws them."""
        return trends_html(self.histories, as_of=self.as_of)


class ChangeFrame(Frame[ChangeView]):
    """Changes, one row each; `n` of `of` devices that measured the same show it."""

    def __init__(self, rows: Iterable[ChangeView], *, as_of: datetime) -> None:
        super().__init__(list(rows), _CHANGE_COLUMNS, as_of=as_of)

    def _repr_html_(self) -> str:
        """Return a table of the changes, as the page of the farm has it."""
        return changes_html(self.rows, as_of=self.as_of)


def result_frame(views: Iterable[ResultView], *, as_of: datetime) -> Frame[ResultView]:
    """Return cells over their rounds, one row a cell; `n` of `of` rounds count, and `quality` is theirs."""
    return Frame(list(views), _RESULT_COLUMNS, as_of=as_of)


def external_frame(views: Iterable[ExternalResultView], *, as_of: datetime) -> Frame[ExternalResultView]:
    """Return results of others, one row a number; `value` is in `unit`, as its file has it."""
    return Frame(list(views), _EXTERNAL_COLUMNS, as_of=as_of)


def _time(view: ResultView, part: str) -> float | None:
    summary: CellSummary | None = view.time
    value: float | None = None if summary is None else getattr(summary, part)
    return value


def _series(row: HistoryRow) -> SeriesSetup:
    return row.series


def _baseline_series(row: HistoryRow) -> SeriesSetup | None:
    return row.series.baseline_setup


def _setup(view: ChangeView) -> CommonSetup:
    return view.setup


def _baseline_setup(view: ChangeView) -> CommonSetup | None:
    return view.baseline_setup


def _version(view: ChangeView, part: ChangedPart, side: str) -> str | None:
    """Return the digest of a file or program before a change, or since; None where it is the same."""
    changed = next((version for version in view.versions if version.part is part), None)
    return None if changed is None else getattr(changed, side)


_RESULT_COLUMNS: tuple[FrameColumn[ResultView], ...] = (
    integer("cell_id"),
    *device_columns(),
    text("label"),
    *setup_columns(lambda view: view),
    milliseconds("time_ms", lambda view: _time(view, "median")),
    milliseconds("low_ms", lambda view: _time(view, "low")),
    milliseconds("high_ms", lambda view: _time(view, "high")),
    milliseconds("ci_low_ms", lambda view: _time(view, "ci_low")),
    milliseconds("ci_high_ms", lambda view: _time(view, "ci_high")),
    milliseconds("min_ms", lambda view: view.min_ns),
    milliseconds("p90_ms", lambda view: view.p90_ns),
    ratio("scatter"),
    text("accelerator"),
    text("quality", lambda view: view.counted),
    integer("n", lambda view: 0 if view.time is None else view.time.rounds),
    integer("of", lambda view: sum(view.rounds_by_quality.values())),
)

_HISTORY_COLUMNS: tuple[FrameColumn[HistoryRow], ...] = (
    integer("series_id", lambda row: row.series.series_id),
    integer("baseline_series_id", lambda row: row.series.baseline_series_id),
    integer("matrix_id", lambda row: row.point.matrix_id),
    integer("cell_id", lambda row: row.point.cell_id),
    text("device", lambda row: row.series.device_label or row.series.device_id),
    text("device_id", lambda row: row.series.device_id),
    text("device_model", lambda row: row.series.device_model),
    text("soc", lambda row: row.series.soc),
    flag("virtual", lambda row: row.series.virtual),
    text("label", lambda row: row.series.label),
    text("baseline", lambda row: row.series.baseline),
    *series_columns(_series),
    text("variant_digest", lambda row: row.point.variant_digest),
    text("program_digest", lambda row: row.point.program_digest),
    *series_columns(_baseline_series, prefix="baseline_"),
    text("baseline_variant_digest", lambda row: row.point.baseline_variant_digest),
    text("baseline_program_digest", lambda row: row.point.baseline_program_digest),
    text("os", lambda row: row.point.os),
    text("android", lambda row: row.point.android),
    text("changed", lambda row: ", ".join(row.point.changed) or None),
    milliseconds("time_ms", lambda row: row.point.time_ns),
    milliseconds("baseline_time_ms", lambda row: row.point.baseline_ns),
    ratio("speedup", lambda row: row.point.speedup),
    ratio("ci_low", lambda row: row.point.ci_low),
    ratio("ci_high", lambda row: row.point.ci_high),
    text("quality", lambda row: "some left out" if row.point.left_out else "all counted"),
    integer("n", lambda row: row.point.rounds),
    integer("of", lambda row: row.point.rounds + row.point.left_out),
    moment("began_at", lambda row: row.point.began_at),
    moment("ended_at", lambda row: row.point.ended_at),
)

_CHANGE_COLUMNS: tuple[FrameColumn[ChangeView], ...] = (
    integer("change_id"),
    text("cause"),
    text("state"),
    *common_columns(_setup),
    *common_columns(_baseline_setup, prefix="baseline_"),
    text("variant", lambda view: view.scope.get("variant")),
    text("device", lambda view: view.device_label or view.scope.get("device")),
    text("changed", lambda view: ", ".join(version.part for version in view.versions) or None),
    text("old_version", lambda view: view.versions[0].old if view.versions else None),
    text("new_version", lambda view: view.versions[0].new if view.versions else None),
    text("old_variant_digest", lambda view: _version(view, ChangedPart.FILE, "old")),
    text("variant_digest", lambda view: _version(view, ChangedPart.FILE, "new")),
    text("old_program_digest", lambda view: _version(view, ChangedPart.PROGRAM, "old")),
    text("program_digest", lambda view: _version(view, ChangedPart.PROGRAM, "new")),
    ratio("time_ratio", lambda view: view.ratio),
    ratio("ci_low", lambda view: view.ratio_low),
    ratio("ci_high", lambda view: view.ratio_high),
    text("quality", lambda view: "shown" if view.gone_at is None else "not shown any more"),
    integer("n", lambda view: view.devices),
    integer("of", lambda view: view.of_devices),
    integer("series"),
    moment("before_at"),
    moment("since_at"),
    moment("told_at"),
)

_EXTERNAL_COLUMNS: tuple[FrameColumn[ExternalResultView], ...] = (
    integer("result_id"),
    integer("import_id"),
    text("file"),
    text("format"),
    text("tool"),
    text("tool_version"),
    text("model"),
    text("device"),
    text("os"),
    text("backend"),
    text("metric"),
    ratio("value"),
    text("unit"),
    text("statistic"),
    text("clock_covers"),
    ratio("minimum"),
    ratio("maximum"),
    ratio("deviation"),
    text("samples"),
    text("settings"),
    text("date"),
    text("quality", lambda view: "external" if view.withdrawn_at is None else "withdrawn"),
    integer("n", lambda view: view.sample_count),
    moment("imported_at"),
)
