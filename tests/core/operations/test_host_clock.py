"""The difference of two clocks by one call: bounded by the round trip, whatever the delays."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.operations.host_clock import MAX_AHEAD_S, ClockDifference, clock_difference

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.fault(49)
@given(ahead_s=st.floats(-1e6, 1e6), there_s=st.floats(0, 30, width=32), back_s=st.floats(0, 30, width=32))
def test_the_true_difference_is_within_the_bound_however_long_either_way_takes(
    ahead_s: float, there_s: float, back_s: float
) -> None:
    asked_at = AT + timedelta(seconds=ahead_s)
    difference = clock_difference(asked_at, AT + timedelta(seconds=there_s), there_s + back_s)
    # datetime has microseconds.
    assert abs(difference.ahead_s - ahead_s) <= difference.uncertainty_s + 3e-6


@pytest.mark.parametrize(
    ("ahead_s", "uncertainty_s", "is_off"),
    [(0, 0, False), (5, 0, False), (5.1, 0, True), (-5.1, 0, True), (30, 25.5, False), (30, 24, True)],
)
def test_clocks_differ_only_where_no_delay_explains_it(
    ahead_s: float, uncertainty_s: float, is_off: bool
) -> None:
    assert ClockDifference(ahead_s=ahead_s, uncertainty_s=uncertainty_s).is_off is is_off


def test_the_furthest_clocks_are_within_the_bounds_of_the_wire() -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert abs(clock_difference(first, last, 0).ahead_s) < MAX_AHEAD_S
