"""Bands of golden runs: units, order and single odd runs do not matter."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.checks.reference_range import (
    MAX_RUNS_ALONE,
    MAX_RUNS_PER_DEVICE,
    MIN_RUNS,
    MIN_RUNS_ALONE,
    MIN_WIDTH_FACTOR,
    RANGE_SHARE,
    ReferenceSample,
    learn_reference_range,
    measure_drift,
)

NOW = datetime(2026, 11, 1, tzinfo=UTC)
times_ns = st.floats(min_value=1e6, max_value=1e10)


def runs(values: Sequence[float], phones: int = 3) -> list[ReferenceSample]:
    """The first is the oldest; phones take turns."""
    return [
        ReferenceSample(
            device=f"phone-{place % phones}", value_ns=value, at=NOW - timedelta(days=len(values) - place)
        )
        for place, value in enumerate(values)
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[ReferenceSample]:
    values = draw(st.lists(times_ns, min_size=MIN_RUNS, max_size=40))
    return runs(values, phones=draw(st.integers(2, 5)))


@given(histories(), st.floats(min_value=1e-3, max_value=1e3))
def test_a_band_in_other_units_is_the_same_band(history: list[ReferenceSample], factor: float) -> None:
    scaled = [replace(run, value_ns=run.value_ns * factor) for run in history]
    here, there = learn_reference_range(history), learn_reference_range(scaled)
    assert here is not None
    assert there is not None
    assert there.center_ns == pytest.approx(here.center_ns * factor)
    assert there.lower_ns == pytest.approx(here.lower_ns * factor)
    assert there.upper_ns == pytest.approx(here.upper_ns * factor)


@given(histories(), st.randoms())
def test_the_order_in_which_runs_are_read_does_not_matter(history: list[ReferenceSample], random) -> None:
    shuffled = list(history)
    random.shuffle(shuffled)
    assert learn_reference_range(shuffled) == learn_reference_range(history)


@given(
    st.lists(times_ns, min_size=MIN_RUNS, max_size=40),
    st.integers(1, 4),
    st.data(),
    st.floats(min_value=1.0, max_value=1e15),
)
def test_one_odd_run_leaves_the_center_between_its_neighbours(
    values: list[float], phones: int, data: st.DataObject, odd: float
) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    others = [value for at, value in enumerate(values) if at != place]
    found = learn_reference_range(
        runs([odd if at == place else value for at, value in enumerate(values)], phones)
    )
    # None: too few are left of phones that were checked too often.
    if found is not None:
        assert min(others) * (1 - 1e-9) <= found.center_ns <= max(others) * (1 + 1e-9)


@given(st.lists(st.floats(min_value=0.97, max_value=1.03), min_size=MIN_RUNS, max_size=30))
def test_an_odd_run_among_steady_ones_moves_the_band_by_less_than_they_scatter(steady: list[float]) -> None:
    before = learn_reference_range(runs([1e8 * each for each in steady]))
    after = learn_reference_range(runs([*(1e8 * each for each in steady[:-1]), 1e12]))
    assert before is not None
    assert after is not None
    assert abs(math.log(after.center_ns / before.center_ns)) <= math.log(1.03 / 0.97)


@given(histories())
def test_a_band_holds_its_center_and_is_as_wide_as_the_floor_at_least(history: list[ReferenceSample]) -> None:
    found = learn_reference_range(history)
    assert found is not None
    assert found.lower_ns <= found.center_ns / MIN_WIDTH_FACTOR * (1 + 1e-9)
    assert found.upper_ns >= found.center_ns * MIN_WIDTH_FACTOR * (1 - 1e-9)


@given(st.lists(times_ns, max_size=MIN_RUNS - 1))
def test_few_runs_teach_nothing(values: list[float]) -> None:
    assert learn_reference_range(runs(values)) is None


def test_a_phone_that_is_checked_ten_times_as_often_does_not_decide_what_is_usual() -> None:
    often = [ReferenceSample(device="often", value_ns=2e8, at=NOW - timedelta(hours=n)) for n in range(100)]
    others = [
        ReferenceSample(device=f"other-{n}", value_ns=1e8, at=NOW - timedelta(days=30 + n))
        for n in range(MAX_RUNS_PER_DEVICE + 1)
    ]
    found = learn_reference_range([*often, *others])
    assert found is not None
    assert found.center_ns == pytest.approx(1e8)


def test_two_phones_that_differ_do_not_make_each_others_band_wide() -> None:
    found = learn_reference_range(runs([1e8, 1.4e8] * 4, phones=2))
    assert found is not None
    assert found.upper_ns < 1.4e8
    assert found.lower_ns > 1e8


@pytest.mark.parametrize("phones", [1, 2, 5])
def test_a_phone_that_is_slow_permanently_does_not_teach_that_it_is_usual(phones: int) -> None:
    usual = runs([1e8] * MIN_RUNS_ALONE * phones, phones)
    slow = [
        ReferenceSample(device="phone-0", value_ns=1.3e8, at=NOW + timedelta(hours=n), was_out_of_range=True)
        for n in range(40)
    ]
    found = learn_reference_range([*usual, *slow])
    assert found is not None
    assert found.upper_ns < 1.3e8


def test_most_of_several_phones_that_are_slow_are_what_their_kind_is_like_now() -> None:
    usual = runs([1e8] * 24, phones=3)
    slow = [
        ReferenceSample(
            device=f"phone-{n % 3}", value_ns=1.3e8, at=NOW + timedelta(hours=n), was_out_of_range=True
        )
        for n in range(24)
    ]
    found = learn_reference_range([*usual, *slow])
    assert found is not None
    assert found.center_ns == pytest.approx(1.3e8)


def test_a_phone_that_drifts_for_weeks_is_compared_to_what_it_was_before() -> None:
    past = [ReferenceSample(device=0, value_ns=1e8, at=NOW - timedelta(days=50 + n)) for n in range(5)]
    since = [
        ReferenceSample(device=0, value_ns=1.2e8, at=NOW - timedelta(days=n), was_out_of_range=True)
        for n in range(40)
    ]
    found = measure_drift([*past, *since], now=NOW)
    assert found is not None
    assert found.factor == pytest.approx(1.2)


@given(st.floats(min_value=0.2, max_value=5.0), times_ns)
def test_a_drift_is_the_factor_between_then_and_now(factor: float, value_ns: float) -> None:
    past = [ReferenceSample(device=0, value_ns=value_ns, at=NOW - timedelta(days=8 + n)) for n in range(6)]
    recent = [
        ReferenceSample(device=0, value_ns=value_ns * factor, at=NOW - timedelta(hours=n)) for n in range(3)
    ]
    found = measure_drift([*past, *recent], now=NOW)
    assert found is not None
    assert found.factor == pytest.approx(factor)
    assert measure_drift([*past, *recent[:2]], now=NOW) is None
    assert measure_drift([*past[:4], *recent], now=NOW) is None


def test_what_was_measured_within_the_week_is_neither_then_nor_now() -> None:
    week = [ReferenceSample(device=0, value_ns=1e8, at=NOW - timedelta(days=5, hours=n)) for n in range(20)]
    recent = [ReferenceSample(device=0, value_ns=3e8, at=NOW - timedelta(hours=n)) for n in range(3)]
    assert measure_drift([*week, *recent], now=NOW) is None


def alone(values_ms: Sequence[float]) -> list[ReferenceSample]:
    return runs([value * 1e6 for value in values_ms], phones=1)


def test_eight_runs_of_the_only_device_of_its_kind_are_no_range() -> None:
    restless = [225, 241, 233, 812, 238, 497, 229, 246]
    assert learn_reference_range(alone(restless)) is None
    found = learn_reference_range(alone(restless * 2))
    assert found is not None
    assert found.lower_ns < 145e6
    assert found.upper_ns > 812e6


def test_the_more_runs_scatter_the_wider_the_range() -> None:
    widths = []
    for scatter in (0.05, 0.1, 0.2, 0.4):
        found = learn_reference_range(
            alone([100 * math.exp(scatter * (-1) ** n) for n in range(MIN_RUNS_ALONE)])
        )
        assert found is not None
        widths.append(found.upper_ns / found.lower_ns)
    assert widths == sorted(set(widths))


@pytest.mark.parametrize(("devices", "each"), [(1, MIN_RUNS_ALONE), (1, MAX_RUNS_ALONE), (2, 4), (4, 8)])
@pytest.mark.parametrize("scatter", [0.02, 0.3])
def test_an_unchanged_device_is_rarely_out_of_its_range(devices: int, each: int, scatter: float) -> None:
    """At most twice as often as the range says, in so many histories; the seed is fixed."""
    random, histories = Random(7), 500
    out = 0
    for _ in range(histories):
        found = learn_reference_range(
            runs([random.lognormvariate(18, scatter) for _ in range(devices * each)], devices)
        )
        assert found is not None
        out += not found.lower_ns <= random.lognormvariate(18, scatter) <= found.upper_ns
    assert out <= 2 * (1 - RANGE_SHARE) * histories + 1
