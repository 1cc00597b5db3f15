"""Series as pages and notebooks show them: each with its name and the charts of its history."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.presentation.labels import device_name, short_labels
from farm.web.charts.trend import AxisUnit, Trend, axis_unit, speedup_trend, time_trend
from farm.wire.documents.results.history import SeriesHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesTrend:
    """A series with its charts."""

    name: str
    device: str
    history: SeriesHistory
    speedup: Trend | None
    time: Trend
    #: Of the times, so that all have the same.
    unit: AxisUnit


def series_trends(histories: Sequence[SeriesHistory]) -> list[SeriesTrend]:
    """Return histories with their charts, each named by what differs from the others."""
    names = short_labels(label for view in histories for label in (view.label, view.baseline) if label)
    return [
        SeriesTrend(
            name=names[view.label] + (f" vs {names[view.baseline]}" if view.baseline else ""),
            device=device_name(view),
            history=view,
            speedup=speedup_trend(view),
            time=time_trend(view),
            unit=axis_unit(view.points[-1].time_ns),
        )
        for view in sorted(histories, key=_place)
        if view.points
    ]


def _place(view: SeriesHistory) -> tuple[str, str, int]:
    return device_name(view), view.model or "", view.series_id
