"""Memory of a run: the high-water mark of a sample behind loading, or why there is none; median and swap."""

from collections.abc import Sequence

import pytest

from farm.core.runs.derived.memory import memory_metrics
from farm.core.runs.measurement import Better, Metric, Reading
from farm.core.runs.trace import RunTrace, TraceSample

MB = 1_000_000
TOO_SHORT = "the measured part was too short for a sample"


def reading(*samples_ms: int) -> Reading:
    return Reading(
        samples_ns=tuple(value * 1_000_000 for value in samples_ms),
        mean_ns=None if samples_ms else 5e6,
        expected_samples=len(samples_ms),
        actual_backend="cpu",
        accelerator="cpu",
        proof="-",
    )


def trace(samples: Sequence[tuple[float, int | None]], *, ended_s: float | None) -> RunTrace:
    """The process starts at 100 s; samples are seconds after that, with the peak in MB."""
    return RunTrace(
        started_uptime_s=100.0,
        ended_uptime_s=None if ended_s is None else 100.0 + ended_s,
        samples=tuple(
            TraceSample(uptime_s=100.0 + at_s, peak_rss_bytes=None if peak is None else peak * MB)
            for at_s, peak in samples
        ),
    )


def test_the_peak_is_the_high_water_mark_of_all_samples() -> None:
    # A child that ended before the last sample takes its peak with it.
    of = trace([(0.0, 2), (0.5, 90), (1.0, 60)], ended_s=1.2)
    assert memory_metrics(of, reading(*[10] * 50)) == (in_bytes("memory_peak_rss", 90),)


def in_bytes(name: str, size_mb: float) -> Metric:
    return Metric(name=name, value=size_mb * MB, unit="bytes", better=Better.LOWER)


def test_median_and_swap_are_of_the_measured_part() -> None:
    samples = [
        # Loading holds more than what is measured, and is swapped out later.
        TraceSample(uptime_s=100.5, rss_bytes=90 * MB, peak_rss_bytes=95 * MB, swap_bytes=70 * MB),
        TraceSample(uptime_s=101.5, rss_bytes=40 * MB, peak_rss_bytes=95 * MB, swap_bytes=0),
        TraceSample(uptime_s=102.0, rss_bytes=42 * MB, peak_rss_bytes=95 * MB, swap_bytes=3 * MB),
        TraceSample(uptime_s=102.5, rss_bytes=60 * MB, peak_rss_bytes=95 * MB, swap_bytes=1 * MB),
        TraceSample(uptime_s=102.6, peak_rss_bytes=95 * MB),
    ]
    of = RunTrace(started_uptime_s=100.0, ended_uptime_s=102.7, samples=tuple(samples))
    assert memory_metrics(of, reading(*[10] * 130)) == (
        in_bytes("memory_peak_rss", 95),
        in_bytes("memory_median_rss", 42),
        in_bytes("memory_peak_swap", 3),
    )


@pytest.mark.parametrize(
    ("samples", "ended_s", "measured", "why"),
    [
        # The process that has only begun has no memory worth the name.
        ([(0.01, 2)], 0.4, [300], TOO_SHORT),
        ([(0.01, 2)], 0.4, [390], TOO_SHORT),
        # 50 ms of inferences after 1.9 s of loading, which may have ended after the last sample.
        (
            [(0.0, 2), (0.5, 20), (1.0, 40), (1.5, 60)],
            1.95,
            [50],
            TOO_SHORT,
        ),
        ([(0.0, None), (0.5, None)], 0.9, [500], "the device hides it"),
        ([(0.0, 2), (0.5, 20)], None, [500], "the end of the run is not in its trace"),
    ],
)
def test_without_a_sample_of_the_measured_part_the_peak_is_unknown_and_says_why(
    samples: list[tuple[float, int | None]], ended_s: float | None, measured: list[int], why: str
) -> None:
    assert memory_metrics(trace(samples, ended_s=ended_s), reading(*measured)) == why


def test_where_the_measured_part_has_no_known_length_the_later_half_counts() -> None:
    late = memory_metrics(trace([(0.0, 2), (0.5, 80)], ended_s=0.9), reading())
    assert late == (in_bytes("memory_peak_rss", 80),)
    assert isinstance(memory_metrics(trace([(0.0, 2), (0.5, 80)], ended_s=1.1), reading()), str)


@pytest.mark.parametrize("of", [None, trace([], ended_s=1.0)])
def test_a_run_that_was_not_sampled_has_neither_peak_nor_reason(of: RunTrace | None) -> None:
    assert memory_metrics(of, reading(10)) is None
