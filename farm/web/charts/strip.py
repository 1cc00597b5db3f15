"""Strips: values over a run, one line each, drawn by the lowest and highest of each column."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from farm.core.base.units import duration_text, size_text
from farm.core.runs.trace import RunTrace, TraceSample
from farm.web.charts.scale import linear_scale

WIDTH, HEIGHT = 640.0, 48.0
#: More columns are not seen.
COLUMNS = 320


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One value over the time or the iterations of a run."""

    name: str
    #: Of an SVG polyline.
    points: str
    #: The lowest and the highest value as text.
    extent: str
    #: A line at this height, such as the hardware's limit, and what it is.
    limit: float | None = None
    limit_text: str = ""
    width: float = WIDTH
    height: float = HEIGHT


def samples_strip(samples_ns: Sequence[int]) -> Strip | None:
    """Return the times of a run's iterations in their order; None of fewer than two."""
    if len(samples_ns) < 2:
        return None
    places = [place / (len(samples_ns) - 1) for place in range(len(samples_ns))]
    return _strip("time of an iteration", list(zip(places, samples_ns, strict=True)), duration_text)


def trace_strips(trace: RunTrace) -> list[Strip]:
    """Return what a device sampled of itself during a run: clocks and their limits, heat, memory, battery."""
    if not trace.samples:
        return []
    begin_s = trace.began_uptime_s
    end_s = trace.ended_uptime_s or trace.samples[-1].uptime_s
    span_s = max(end_s - begin_s, 0.01)

    def over_time(value: Callable[[TraceSample], float | None]) -> list[tuple[float, float]]:
        return [
            ((sample.uptime_s - begin_s) / span_s, number)
            for sample in trace.samples
            if (number := value(sample)) is not None
        ]

    strips = [
        _strip(
            f"{policy.name}: limit of its clock",
            over_time(partial(_limit_hz, index)),
            _clock_text,
            limit=policy.hardware_max_hz,
        )
        for index, policy in enumerate(trace.policies)
    ]
    strips += [
        _strip(
            "GPU: limit of its clock",
            over_time(lambda sample: sample.gpu.limit_hz),
            _clock_text,
            limit=trace.gpu_max_hz,
        ),
        _strip(
            "hottest sensor",
            over_time(lambda sample: max(sample.temperatures_c.values(), default=None)),
            "{:.1f} °C".format,
        ),
        _strip("memory of the process", over_time(lambda sample: sample.rss_bytes), size_text),
        _strip("swapped out", over_time(lambda sample: sample.swap_bytes or None), size_text),
        _strip("battery current", over_time(lambda sample: sample.battery_a), "{:+.2f} A".format),
    ]
    return [strip for strip in strips if strip is not None]


def _clock_text(hz: float) -> str:
    return f"{hz / 1e9:.2f} GHz"


def _strip(
    name: str,
    values: Sequence[tuple[float, float]],
    text: Callable[[float], str],
    *,
    limit: float | None = None,
) -> Strip | None:
    """Return a strip of values at places from 0 to 1; None without any."""
    if not values:
        return None
    numbers = [number for _, number in values]
    scale = linear_scale([*numbers, *([limit] if limit else [])], length=HEIGHT, from_zero=limit is not None)
    low, high = text(min(numbers)), text(max(numbers))
    return Strip(
        name=name,
        points=_points(values, lambda number: round(HEIGHT - scale.place(number), 1)),
        extent=low if low == high else f"{low} to {high}",
        limit=None if limit is None else round(HEIGHT - scale.place(limit), 1),
        limit_text="" if limit is None else f"the hardware's: {text(limit)}",
    )


def _points(values: Iterable[tuple[float, float]], height: Callable[[float], float]) -> str:
    """Return the points of a line: of each column the first, lowest, highest and last, so no peak is lost."""
    columns: dict[int, list[float]] = {}
    for place, number in values:
        columns.setdefault(min(int(place * COLUMNS), COLUMNS - 1), []).append(number)
    points = []
    for column, own in sorted(columns.items()):
        x = round((column + 0.5) * WIDTH / COLUMNS, 1)
        points += [f"{x},{height(number)}" for number in dict.fromkeys([own[0], min(own), max(own), own[-1]])]
    return " ".join(points)


def _limit_hz(index: int, sample: TraceSample) -> int | None:
    return sample.clock_of(index).limit_hz
