"""Trends: one point a session, over time; with the interval of each, new versions, and changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from farm.core.base.units import duration_text, ratio_text
from farm.web.charts.forest import Span, Tick, ratio_tick_text
from farm.web.charts.scale import Scale, log_scale
from farm.wire.documents.results.history import HistoryPoint, SeriesHistory

WIDTH, HEIGHT = 520.0, 110.0
#: A trend whose values lie within this ratio is drawn flat: noise is no trend.
_LEAST = 1.02


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """One session."""

    x: float
    y: float
    interval: Span | None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendMark:
    """A new version, or a change: where it is, and its number in the list below."""

    x: float
    #: From where it may be: a change lies between two sessions.
    since: float
    is_change: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A value over time. Upwards is more."""

    name: str
    width: float
    height: float
    points: Sequence[TrendPoint]
    line: str
    marks: Sequence[TrendMark]
    ticks: Sequence[Tick]
    #: Where a speedup is 1; None for times.
    one: float | None
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisUnit:
    """A unit of time, with its size in nanoseconds."""

    name: str
    size: float


_AXIS_UNITS = (
    AxisUnit(name="s", size=1e9),
    AxisUnit(name="ms", size=1e6),
    AxisUnit(name="µs", size=1e3),
    AxisUnit(name="ns", size=1.0),
)


def axis_unit(time_ns: float) -> AxisUnit:
    """Return the unit in which a time is written: the largest that it reaches."""
    return next((unit for unit in _AXIS_UNITS if time_ns >= unit.size), _AXIS_UNITS[-1])


def axis_ms(at: datetime) -> int:
    """Return the place of a time on the axis of a chart: milliseconds of the farm's local time, as if UTC."""
    local = at.astimezone()
    return round(1000 * (local.timestamp() + (local.utcoffset() or timedelta()).total_seconds()))


def speedup_trend(history: SeriesHistory) -> Trend | None:
    """Return the trend of a paired ratio; None for what is compared with nothing."""
    points = [point for point in history.points if point.speedup is not None]
    if not points:
        return None
    bounds = [value for point in points for value in (point.ci_low, point.ci_high) if value is not None]
    values = [*(point.speedup or 1.0 for point in points), *bounds]
    middle = (min(values) * max(values)) ** 0.5
    scale = log_scale(values, length=HEIGHT, around=middle, least=_LEAST)
    return _trend(
        "speedup",
        history,
        points,
        scale,
        value=lambda point: point.speedup or 1.0,
        text=ratio_text,
        tick_text=ratio_tick_text,
        interval=lambda point: (point.ci_low, point.ci_high),
    )


def time_trend(history: SeriesHistory) -> Trend:
    """Return the trend of absolute time, which heat and age of the device move, too."""
    times = [point.time_ns for point in history.points]
    middle = (min(times) * max(times)) ** 0.5
    scale = log_scale(times, length=HEIGHT, around=middle, least=_LEAST)
    return _trend(
        "time",
        history,
        history.points,
        scale,
        value=lambda point: point.time_ns,
        text=duration_text,
        tick_text=duration_text,
        interval=lambda _: (None, None),
    )


def _trend(
    name: str,
    history: SeriesHistory,
    points: Sequence[HistoryPoint],
    scale: Scale,
    *,
    value: Callable[[HistoryPoint], float],
    text: Callable[[float], str],
    tick_text: Callable[[float], str],
    interval: Callable[[HistoryPoint], tuple[float | None, float | None]],
) -> Trend:
    begin, end = points[0].ended_at, points[-1].ended_at
    span_s = (end - begin).total_seconds()

    def x(at: datetime) -> float:
        share = 0.5 if span_s <= 0 else (at - begin).total_seconds() / span_s
        return round(WIDTH * (0.01 + 0.98 * min(max(share, 0.0), 1.0)), 1)

    def y(number: float) -> float:
        return round(HEIGHT - scale.place(number), 1)

    def span(point: HistoryPoint) -> Span | None:
        low, high = interval(point)
        return None if low is None or high is None else Span(low=y(high), high=y(low))

    drawn = [
        TrendPoint(
            x=x(point.ended_at),
            y=y(value(point)),
            interval=span(point),
            words=f"{point.ended_at.astimezone():%Y-%m-%d}, matrix {point.matrix_id}: {text(value(point))}",
        )
        for point in points
    ]
    marks = [
        TrendMark(x=x(point.began_at), since=x(point.began_at), is_change=False)
        for point in points
        if point.changed
    ]
    marks += [
        TrendMark(x=x(change.since_at), since=x(change.before_at), is_change=True)
        for change in history.changes
    ]
    return Trend(
        name=name,
        width=WIDTH,
        height=HEIGHT,
        points=drawn,
        line=" ".join(f"{point.x},{point.y}" for point in drawn),
        marks=marks,
        ticks=[Tick(at=y(number), text=tick_text(number)) for number in scale.ticks()],
        one=y(1.0) if name == "speedup" and scale.low <= 1.0 <= scale.high else None,
        begin=begin,
        end=end,
    )
