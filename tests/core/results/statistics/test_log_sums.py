"""Sums of logarithms give the interval of the logarithms themselves, also where they are joined."""

import math
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.results.statistics.interval import log_interval
from farm.core.results.statistics.log_sums import LogSums

TIMES = st.tuples(st.floats(1e3, 1e12), st.floats(1e3, 1e12))
GROUPS = st.lists(st.lists(TIMES, min_size=1, max_size=9), min_size=1, max_size=4)


@given(GROUPS)
def test_joined_sums_have_the_interval_of_all_logarithms(groups: list[list[tuple[float, float]]]) -> None:
    first, *others = [LogSums.of(own) for own in groups]
    sums = first
    for own in others:
        sums = sums.with_others(own)
    logs = [math.log(baseline) - math.log(time) for time, baseline in chain.from_iterable(groups)]
    assert sums.devices == len(logs)
    assert (sums.least, sums.most) == (min(logs), max(logs))
    assert sums.speedup == pytest.approx(math.fsum(logs), abs=1e-9)
    if len(logs) > 1:
        its, exact = sums.interval(), log_interval(logs)
        assert its.mean == pytest.approx(exact.mean, abs=1e-9)
        # Squared logarithms are up to ln(1e9)**2 = 430 here. Rounded to 2e-16 of that, the variance of equal
        # ratios may be 1e-13 instead of 0, and their error 3e-7.
        assert its.standard_error == pytest.approx(exact.standard_error, rel=1e-6, abs=1e-6)


def test_equal_speedups_have_an_interval_without_width() -> None:
    sums = LogSums.of([(1e6, 1.1e6)] * 7)
    assert sums.interval().half_width < 1e-7
