"""The trace of a run as text: one strip over its time for each thing that the device showed."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from farm.cli.shell.tables import Field
from farm.core.base.units import size_text
from farm.core.runs.trace import ClockSample, RunTrace, TraceSample
from farm.presentation.jobs.bars import UNKNOWN_BAR, bar
from farm.presentation.text import plural

#: Columns of a strip: with names and ranges, a line has 80 at most.
WIDTH = 31
_NAME_WIDTH = 15

_Value = Callable[[TraceSample], float | None]


def trace_fields(trace: RunTrace, *, columns: int = WIDTH) -> Iterator[Field]:
    """Return a line with the times, then one for each policy, the GPU, heat, memory and battery.

    Args:
        trace: of the run.
        columns: of a strip; fewer where the headings of the report are wider than 9.
    """
    if not trace.samples:
        yield "during", "the device showed nothing of itself"
        return
    start_s, end_s = _times(trace)
    cut = ", cut short" if trace.is_cut else ""
    column = f"a column is {(end_s - start_s) / columns:.2g} s"
    yield "during", f"{end_s - start_s:.1f} s, {plural(len(trace.samples), 'sample')}{cut}; {column}"
    for name, strip, extent in _strips(trace, start_s, end_s, columns):
        yield "", f"{name:{_NAME_WIDTH}}{strip} {extent}"


def _times(trace: RunTrace) -> tuple[float, float]:
    start_s, last_s = trace.began_uptime_s, trace.samples[-1].uptime_s
    return start_s, max(last_s if trace.ended_uptime_s is None else trace.ended_uptime_s, start_s + 0.01)


def _strips(trace: RunTrace, start_s: float, end_s: float, width: int) -> Iterator[tuple[str, str, str]]:
    def strip(value: _Value, pick: Callable[[Sequence[float]], float], low: float, high: float) -> str:
        columns: list[list[float]] = [[] for _ in range(width)]
        for sample in trace.samples:
            place = int((sample.uptime_s - start_s) / (end_s - start_s) * width)
            if (number := value(sample)) is not None:
                columns[max(0, min(place, width - 1))].append(number)
        # Without a bar there is no sample in this part of the run, or the device hides the value.
        return "".join(bar(pick(column), low, high) if column else UNKNOWN_BAR for column in columns)

    for name, hardware_hz, clock in _clocks(trace):
        for what, value in clock.items():
            known = [hz for sample in trace.samples if (hz := value(sample)) is not None]
            if known:
                line = strip(value, min, 0, hardware_hz or max(known))
                yield f"{name} {what}", line, _clock_extent(known, hardware_hz)
    others: tuple[tuple[str, _Value, Callable[[float], str]], ...] = (
        ("hottest", _hottest, "{:.1f} °C".format),
        ("memory", lambda sample: sample.rss_bytes, _size),
        ("swapped", lambda sample: sample.swap_bytes or None, _size),
        ("battery", lambda sample: sample.battery_a, "{:+.2f} A".format),
    )
    for name, value, text in others:
        known_values = [number for sample in trace.samples if (number := value(sample)) is not None]
        if known_values:
            low, high = min(known_values), max(known_values)
            extent = text(low) if text(low) == text(high) else f"{text(low)} to {text(high)}"
            yield name, strip(value, max, min(low, 0), high), extent


def _clocks(trace: RunTrace) -> Iterator[tuple[str, int | None, dict[str, _Value]]]:
    """Yield name and hardware's maximum of each clock, with how to find its limit and its value."""
    for index, policy in enumerate(trace.policies):
        yield policy.name, policy.hardware_max_hz, _values(partial(TraceSample.clock_of, index=index))
    yield "gpu", trace.gpu_max_hz, _values(lambda sample: sample.gpu)


def _values(clock: Callable[[TraceSample], ClockSample]) -> dict[str, _Value]:
    return {
        "limit": lambda sample: clock(sample).limit_hz,
        "clock": lambda sample: clock(sample).current_hz,
    }


def _hottest(sample: TraceSample) -> float | None:
    return max(sample.temperatures_c.values(), default=None)


def _size(count: float) -> str:
    return size_text(round(count))


def _clock_extent(known: Sequence[float], hardware_hz: int | None) -> str:
    low, high = (f"{hz / 1e9:.2f}" for hz in (min(known), max(known)))
    extent = low if low == high else f"{low} to {high}"
    return f"{extent} GHz" if hardware_hz is None else f"{extent} of {hardware_hz / 1e9:.2f} GHz"
