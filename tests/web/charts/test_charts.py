"""Geometry of charts: places within the axis, round ticks, no peak lost."""

import math
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.units import duration_text
from farm.core.runs.trace import ClockSample, RunTrace, TracePolicy, TraceSample
from farm.web.charts.forest import WIDTH, forest_plot
from farm.web.charts.scale import linear_scale, log_scale
from farm.web.charts.strip import COLUMNS, HEIGHT, Strip, samples_strip, trace_strips
from farm.web.charts.trend import TimedValue, value_trend
from tests.support.sample_views import speedup_view

RATIOS = st.floats(min_value=0.01, max_value=100)


@given(st.lists(RATIOS, min_size=1, max_size=20))
def test_a_log_scale_holds_its_values_in_their_order(values: list[float]) -> None:
    scale = log_scale(values, length=420)
    places = [scale.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 < place < 420 for place in places)
    assert 0 < scale.place(1.0) < 420
    ticks = scale.ticks()
    assert list(ticks) == sorted(set(ticks))
    assert 2 <= len(ticks) <= 16
    assert all(scale.low <= tick <= scale.high for tick in ticks)


@given(st.lists(st.floats(min_value=-1e9, max_value=1e9), max_size=20))
def test_a_linear_scale_has_a_few_round_ticks(values: list[float]) -> None:
    scale = linear_scale(values, length=100)
    assert scale.low < scale.high
    assert 2 <= len(scale.ticks()) <= 10


def test_half_and_twice_as_fast_are_equally_far_from_one() -> None:
    scale = log_scale([0.5, 2.0], length=400)
    assert scale.place(1.0) - scale.place(0.5) == pytest.approx(scale.place(2.0) - scale.place(1.0), abs=0.2)


def test_a_forest_plot_draws_interval_margin_and_what_equal_cells_showed() -> None:
    views = [
        speedup_view(speedup=1.01, ci_low=0.99, ci_high=1.03, aa=True, margin=0.02),
        speedup_view(speedup=2.0, ci_low=1.9, ci_high=2.1, margin=0.02),
        speedup_view(speedup=None, ci_low=None, ci_high=None, margin=0.02),
    ]
    forest = forest_plot(views)
    assert [row.interval is not None for row in forest.rows] == [True, True, False]
    assert forest.rows[2].point is None
    assert forest.noise is not None
    assert forest.margin is not None
    assert forest.margin.low < forest.one < forest.margin.high
    assert forest.noise.low < forest.one < forest.noise.high
    twice = forest.rows[1].interval
    assert twice is not None
    assert twice.low < (forest.rows[1].point or math.nan) < twice.high <= WIDTH


def test_the_strip_of_many_samples_keeps_each_peak() -> None:
    samples = [1000] * 100_000
    samples[31_415] = 9000
    strip = samples_strip(samples)
    assert strip is not None
    points = dots_of(strip)
    assert len(points) <= 4 * COLUMNS
    assert min(y for _, y in points) < 0.1 * HEIGHT
    assert (strip.low, strip.median, strip.high) == ("1.00 µs", "1.00 µs", "9.00 µs")
    assert samples_strip([]) is None


def dots_of(strip: Strip) -> list[tuple[float, float]]:
    """Return the places of the dots."""
    return [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+),([\d.]+)h0", strip.dots)]


@pytest.mark.parametrize("samples", [[5], [20, 30], [7, 7, 7]])
def test_each_of_few_samples_is_a_dot_on_an_axis_with_ticks(samples: list[int]) -> None:
    strip = samples_strip(samples)
    assert strip is not None
    points = dots_of(strip)
    assert len(points) == len(samples)
    assert all(0 <= y <= HEIGHT for _, y in points)
    assert 2 <= len(strip.ticks) <= 6
    assert len({tick.text for tick in strip.ticks}) == len(strip.ticks)
    assert strip.unit == "ns"
    assert 0 <= strip.median_at <= HEIGHT


@given(st.floats(min_value=1e3, max_value=1e10), st.floats(min_value=0, max_value=0.1), st.integers(1, 1000))
def test_no_two_ticks_have_the_same_text(time_ns: float, spread: float, samples: int) -> None:
    times = [round(time_ns * (1 + spread * place / samples)) for place in range(samples)]
    strip = samples_strip(times)
    at = datetime(2026, 1, 2, tzinfo=UTC)
    trend = value_trend("time", [TimedValue(at=at, value=own, words="") for own in times], duration_text)
    for drawn in filter(None, (strip, trend)):
        texts = [tick.text for tick in drawn.ticks]
        assert len(texts) >= 2
        assert len(set(texts)) == len(texts)


def test_a_value_that_hardly_changes_is_drawn_flat_in_the_unit_of_its_caption() -> None:
    samples = tuple(
        TraceSample(uptime_s=10.0 + place, clocks=(), rss_bytes=3_000_000_000 + 1000 * place)
        for place in range(38)
    )
    (memory,) = trace_strips(RunTrace(policies=(), started_uptime_s=10.0, samples=samples))
    heights = [y for _, y in dots_of(memory)]
    assert max(heights) - min(heights) < 0.01 * HEIGHT
    assert (memory.low, memory.high, memory.unit) == ("3.00 GB", "3.00 GB", "GB")
    grown = (*samples, replace(samples[-1], uptime_s=50.0, rss_bytes=3_300_000_000))
    (memory,) = trace_strips(RunTrace(policies=(), started_uptime_s=10.0, samples=grown))
    heights = [y for _, y in dots_of(memory)]
    assert max(heights) - min(heights) > 0.8 * HEIGHT


def test_one_sample_of_a_trace_is_a_dot_and_a_lowered_ceiling_is_said_in_words() -> None:
    policy = TracePolicy(name="policy4", hardware_max_hz=2_000_000_000)
    one = TraceSample(uptime_s=12.0, clocks=(ClockSample(limit_hz=1_500_000_000),), rss_bytes=4_000_000)
    trace = RunTrace(policies=(policy,), started_uptime_s=10.0, samples=(one,))
    clock, memory = trace_strips(trace)
    assert len(dots_of(clock)) == len(dots_of(memory)) == 1
    assert clock.note == "limited to 1.50 of 2.00 GHz, from 2.0 s on, in 1 of 1 samples"
    assert (memory.unit, memory.end) == ("MB", "2 s")
    whole = replace(one, clocks=(ClockSample(limit_hz=2_000_000_000),))
    (clock, _) = trace_strips(replace(trace, samples=(whole,)))
    assert clock.note == "not limited: 2.00 GHz in all samples"
