"""The trace of a run: the ceilings of clocks in words, and its samples as a table."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from farm.core.devices.condition import FULL_CLOCK
from farm.core.runs.trace import RunTrace, TraceSample


def ceiling_texts(trace: RunTrace) -> dict[str, str]:
    """Return by clock, `gpu` among them, how far its limit was below the hardware's; not of hidden limits."""
    return {
        name: _ceiling_text(trace, limit_hz, hardware_hz)
        for name, hardware_hz, limit_hz in _limits(trace)
        if any(limit_hz(sample) is not None for sample in trace.samples)
    }


def _limits(trace: RunTrace) -> Iterator[tuple[str, int, Callable[[TraceSample], int | None]]]:
    for index, policy in enumerate(trace.policies):
        if policy.hardware_max_hz is not None:
            yield policy.name, policy.hardware_max_hz, partial(_policy_limit_hz, index=index)
    if trace.gpu_max_hz is not None:
        yield "gpu", trace.gpu_max_hz, _gpu_limit_hz


def _policy_limit_hz(sample: TraceSample, *, index: int) -> int | None:
    return sample.clock_of(index).limit_hz


def _gpu_limit_hz(sample: TraceSample) -> int | None:
    return sample.gpu.limit_hz


def _ceiling_text(trace: RunTrace, limit_hz: Callable[[TraceSample], int | None], hardware_hz: int) -> str:
    known = [(sample.uptime_s, hz) for sample in trace.samples if (hz := limit_hz(sample)) is not None]
    lowered = [(at, hz) for at, hz in known if hz < FULL_CLOCK * hardware_hz]
    hardware = f"{hardware_hz / 1e9:.2f} GHz"
    if not lowered:
        return f"not limited: {hardware} in all samples"
    lowest = f"{min(hz for _, hz in lowered) / 1e9:.2f}"
    first_s = lowered[0][0] - trace.began_uptime_s
    share = f"in {len(lowered)} of {len(known)} samples"
    return f"limited to {lowest} of {hardware}, from {first_s:.1f} s on, {share}"


def trace_columns(trace: RunTrace) -> Sequence[str]:
    """Return the columns of a trace as a table, each with its unit: what no sample has is left out."""
    return [
        name for name, value in _columns(trace) if any(value(sample) is not None for sample in trace.samples)
    ]


def trace_rows(trace: RunTrace, columns: Sequence[str]) -> Iterator[Sequence[float | None]]:
    """Yield the values of these columns for each sample; None where the device hides one."""
    values = dict(_columns(trace))
    for sample in trace.samples:
        yield [values[name](sample) for name in columns]


def _columns(trace: RunTrace) -> Iterator[tuple[str, Callable[[TraceSample], float | None]]]:
    yield "time_s", lambda sample: round(sample.uptime_s - trace.began_uptime_s, 2)
    for index, policy in enumerate(trace.policies):
        yield f"{policy.name}_limit_hz", partial(_policy_limit_hz, index=index)
        yield f"{policy.name}_clock_hz", partial(_policy_clock_hz, index=index)
    yield "gpu_limit_hz", _gpu_limit_hz
    yield "gpu_clock_hz", lambda sample: sample.gpu.current_hz
    yield "hottest_c", lambda sample: max(sample.temperatures_c.values(), default=None)
    yield "memory_bytes", lambda sample: sample.rss_bytes
    yield "swapped_bytes", lambda sample: sample.swap_bytes
    yield "cpu_s", lambda sample: sample.cpu_s
    yield "battery_a", lambda sample: sample.battery_a
    yield "battery_v", lambda sample: sample.battery_v


def _policy_clock_hz(sample: TraceSample, *, index: int) -> int | None:
    return sample.clock_of(index).current_hz
