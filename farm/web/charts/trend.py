"""Trends: one point a session, over time; with the interval of each, new versions, and changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from farm.core.base.units import duration_text, ratio_text
from farm.web.charts.forest import Span, Tick, ratio_tick_text
from farm.web.charts.scale import Scale, linear_scale, log_scale
from farm.wire.documents.results.history import HistoryPoint, SeriesHistory

WIDTH, HEIGHT = 520.0, 110.0
#: A trend whose values lie within this ratio is drawn flat: noise is no trend.
_LEAST = 1.02
#: The same on a linear axis, as a share of the largest value: three digits tell its ticks apart.
_LEAST_SPAN = 0.05


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedValue:
    """A value at a time, with the words of its tooltip, and its interval where it has one."""

    at: datetime
    value: float
    words: str
    low: float | None = None
    high: float | None = None


def speedup_trend(history: SeriesHistory) -> Trend | None:
    """Return the trend of a paired ratio; None for what is compared with nothing."""
    points = [
        TimedValue(
            at=point.ended_at,
            value=point.speedup,
            words=_words(point, ratio_text(point.speedup)),
            low=point.ci_low,
            high=point.ci_high,
        )
        for point in history.points
        if point.speedup is not None
    ]
    if not points:
        return None
    values = [
        value for point in points for value in (point.value, point.low, point.high) if value is not None
    ]
    middle = (min(values) * max(values)) ** 0.5
    scale = log_scale(values, length=HEIGHT, around=middle, least=_LEAST)
    return _trend("speedup", points, scale, ratio_tick_text, _marks(history), one=1.0)


def time_trend(history: SeriesHistory) -> Trend:
    """Return the trend of absolute time, which heat and age of the device move, too."""
    points = [
        TimedValue(at=point.ended_at, value=point.time_ns, words=_words(point, duration_text(point.time_ns)))
        for point in history.points
    ]
    times = [point.value for point in points]
    middle = (min(times) * max(times)) ** 0.5
    scale = log_scale(times, length=HEIGHT, around=middle, least=_LEAST)
    return _trend("time", points, scale, duration_text, _marks(history))


def value_trend(name: str, points: Sequence[TimedValue], text: Callable[[float], str]) -> Trend | None:
    """Return the trend of any value, oldest first; None without one."""
    if not points:
        return None
    scale = linear_scale([point.value for point in points], length=HEIGHT, least=_LEAST_SPAN)
    return _trend(name, points, scale, text)


def _words(point: HistoryPoint, text: str) -> str:
    return f"{point.ended_at.astimezone():%Y-%m-%d}, matrix {point.matrix_id}: {text}"


def _marks(history: SeriesHistory) -> list[tuple[datetime, datetime, bool]]:
    """Return from when to when each new version and each change is, and whether it is a change."""
    versions = [(point.began_at, point.began_at, False) for point in history.points if point.changed]
    return [*versions, *((change.before_at, change.since_at, True) for change in history.changes)]


def _trend(
    name: str,
    points: Sequence[TimedValue],
    scale: Scale,
    text: Callable[[float], str],
    marks: Sequence[tuple[datetime, datetime, bool]] = (),
    *,
    one: float | None = None,
) -> Trend:
    begin, end = points[0].at, points[-1].at
    span_s = (end - begin).total_seconds()

    def x(at: datetime) -> float:
        share = 0.5 if span_s <= 0 else (at - begin).total_seconds() / span_s
        return round(WIDTH * (0.01 + 0.98 * min(max(share, 0.0), 1.0)), 1)

    def y(number: float) -> float:
        return round(HEIGHT - scale.place(number), 1)

    drawn = [
        TrendPoint(
            x=x(point.at),
            y=y(point.value),
            interval=None
            if point.low is None or point.high is None
            else Span(low=y(point.high), high=y(point.low)),
            words=point.words,
        )
        for point in points
    ]
    return Trend(
        name=name,
        width=WIDTH,
        height=HEIGHT,
        points=drawn,
        line=" ".join(f"{point.x},{point.y}" for point in drawn),
        marks=[
            TrendMark(x=x(until), since=x(since), is_change=is_change) for since, until, is_change in marks
        ],
        ticks=[Tick(at=y(number), text=text(number)) for number in scale.ticks()],
        one=y(one) if one is not None and scale.low <= one <= scale.high else None,
        begin=begin,
        end=end,
    )
