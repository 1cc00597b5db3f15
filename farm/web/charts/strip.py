"""Strip plots: the samples of a run as points on an axis with its unit, in their order or over its time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from farm.core.base.units import duration_text, size_text
from farm.core.runs.trace import RunTrace, TraceSample
from farm.presentation.jobs.trace import ceiling_texts
from farm.web.charts.forest import Tick
from farm.web.charts.scale import linear_scale
from farm.web.charts.trend import axis_unit

#: The width is that of the drawing: browsers stretch it to that of the page. The height is in pixels.
WIDTH, HEIGHT = 640.0, 96.0
#: More columns are not seen.
COLUMNS = 320
#: More samples than that are drawn as a line alone, where they have a time.
_MOST_DOTS = 100
_MOST_TICKS = 5
#: A strip whose values lie within this share of the largest is drawn flat: a steady value has no slope.
_LEAST_SPAN = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The unit of an axis, by how many of the stored unit it is; and how a single value is written."""

    name: str
    size: float
    text: Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One value over the iterations or the time of a run."""

    name: str
    unit: str
    #: Lowest, median and highest value as text.
    low: str
    median: str
    high: str
    #: Of an SVG path: a dot for each sample.
    dots: str
    #: Of an SVG polyline; empty where the order is no time.
    line: str
    ticks: Sequence[Tick]
    median_at: float
    #: The ends of the other axis.
    begin: str
    end: str
    #: A line at this height, such as the hardware's limit.
    limit: float | None = None
    #: What it comes to, in words.
    note: str = ""
    width: float = WIDTH
    height: float = HEIGHT


def samples_strip(samples_ns: Sequence[int]) -> Strip | None:
    """Return the times of a run's iterations in their order; None without any."""
    if not samples_ns:
        return None
    last = max(len(samples_ns) - 1, 1)
    values = [(place / last, float(time_ns)) for place, time_ns in enumerate(samples_ns)]
    unit = axis_unit(median(samples_ns))
    return _strip(
        "time of an iteration",
        values,
        Unit(name=unit.name, size=unit.size, text=duration_text),
        ends=("iteration 1", f"{len(samples_ns)}" if len(samples_ns) > 1 else ""),
        is_line=False,
    )


def trace_strips(trace: RunTrace) -> list[Strip]:
    """Return what a device sampled of itself during a run: clocks and their limits, heat, memory, battery."""
    if not trace.samples:
        return []
    begin_s = trace.began_uptime_s
    end_s = trace.ended_uptime_s or trace.samples[-1].uptime_s
    span_s = max(end_s - begin_s, 0.01)
    ceilings = ceiling_texts(trace)

    def over_time(
        name: str,
        value: Callable[[TraceSample], float | None],
        unit: Unit,
        *,
        limit: float | None = None,
        note: str = "",
    ) -> Strip | None:
        values = [
            ((sample.uptime_s - begin_s) / span_s, number)
            for sample in trace.samples
            if (number := value(sample)) is not None
        ]
        return _strip(name, values, unit, ends=("0 s", f"{span_s:.3g} s"), limit=limit, note=note)

    strips = [
        over_time(
            f"{policy.name}: limit of its clock",
            partial(_limit_hz, index),
            _GHZ,
            limit=policy.hardware_max_hz,
            note=ceilings.get(policy.name, ""),
        )
        for index, policy in enumerate(trace.policies)
    ]
    strips += [
        over_time(
            "GPU: limit of its clock",
            lambda sample: sample.gpu.limit_hz,
            _GHZ,
            limit=trace.gpu_max_hz,
            note=ceilings.get("gpu", ""),
        ),
        over_time(
            "hottest sensor", lambda sample: max(sample.temperatures_c.values(), default=None), _CELSIUS
        ),
        over_time(
            "memory of the process",
            lambda sample: sample.rss_bytes,
            _size_unit(sample.rss_bytes for sample in trace.samples),
        ),
        over_time(
            "swapped out",
            lambda sample: sample.swap_bytes or None,
            _size_unit(sample.swap_bytes for sample in trace.samples),
        ),
        over_time("battery current", lambda sample: sample.battery_a, _AMPERES),
    ]
    return [strip for strip in strips if strip is not None]


def _clock_text(hz: float) -> str:
    return f"{hz / 1e9:.2f} GHz"


_GHZ = Unit(name="GHz", size=1e9, text=_clock_text)
_CELSIUS = Unit(name="°C", size=1.0, text="{:.1f} °C".format)
_SIZES = tuple(
    Unit(name=name, size=size, text=size_text)
    for name, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
)
_AMPERES = Unit(name="A", size=1.0, text="{:+.2f} A".format)


def _size_unit(sizes: Iterable[int | None]) -> Unit:
    """Return the unit in which the largest of these sizes, in bytes, is written."""
    largest = max((size for size in sizes if size is not None), default=0)
    return next((unit for unit in _SIZES if largest >= unit.size), _SIZES[-1])


def _strip(
    name: str,
    values: Sequence[tuple[float, float]],
    unit: Unit,
    *,
    ends: tuple[str, str],
    limit: float | None = None,
    note: str = "",
    is_line: bool = True,
) -> Strip | None:
    """Return a strip of values at places from 0 to 1; None without any."""
    if not values:
        return None
    numbers = [number for _, number in values]
    known = [*numbers, *([limit] if limit else [])]
    # In the unit of the axis, so that its ticks are round there.
    scale = linear_scale(
        (number / unit.size for number in known),
        length=HEIGHT,
        from_zero=limit is not None,
        least=_LEAST_SPAN,
    )

    def height(number: float) -> float:
        return round(HEIGHT - scale.place(number / unit.size), 1)

    ticks = scale.ticks()
    points = list(_points(values, height))
    middle = median(numbers)
    return Strip(
        name=name,
        unit=unit.name,
        low=unit.text(min(numbers)),
        median=unit.text(middle),
        high=unit.text(max(numbers)),
        dots="" if is_line and len(points) > _MOST_DOTS else "".join(f"M{x},{y}h0" for x, y in points),
        line=" ".join(f"{x},{y}" for x, y in points) if is_line else "",
        ticks=[
            Tick(at=height(tick * unit.size), text=f"{tick:g}")
            for tick in (ticks if len(ticks) <= _MOST_TICKS else ticks[::2])
        ],
        median_at=height(middle),
        begin=ends[0],
        end=ends[1],
        limit=None if limit is None else height(limit),
        note=note,
    )


def _points(
    values: Iterable[tuple[float, float]], height: Callable[[float], float]
) -> Iterable[tuple[float, float]]:
    """Yield points: of each column the first, lowest, highest and last, so no peak is lost."""
    columns: dict[int, list[float]] = {}
    for place, number in values:
        columns.setdefault(min(max(int(place * COLUMNS), 0), COLUMNS - 1), []).append(number)
    for column, own in sorted(columns.items()):
        x = round((column + 0.5) * WIDTH / COLUMNS, 1)
        yield from ((x, height(number)) for number in dict.fromkeys([own[0], min(own), max(own), own[-1]]))


def _limit_hz(index: int, sample: TraceSample) -> int | None:
    return sample.clock_of(index).limit_hz
