"""Looks at growing data spend one error: the levels are those of the literature, and of simulated paths."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from farm.core.results.looks.spending import nominal_levels, pocock_spending

LOOKS = (5, 8, 12, 20, 40)


def levels(information: tuple[int, ...], alpha: float = 0.05) -> tuple[float, ...]:
    return nominal_levels(
        information, tuple(pocock_spending(now / information[-1], alpha) for now in information)
    )


def test_five_equal_looks_have_the_levels_of_lan_and_demets() -> None:
    # Jennison and Turnbull, "Group Sequential Methods", table 7.6: critical values of the Pocock type.
    bounds = [-float(ndtri(level / 2)) for level in levels((1, 2, 3, 4, 5))]
    assert bounds == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=0.0006)


def test_one_look_has_all_of_the_error() -> None:
    assert levels((40,)) == pytest.approx((0.05,))


def test_the_levels_of_the_usual_looks_are_those_of_a_million_paths() -> None:
    drawn = np.random.default_rng(1)
    steps = np.diff([0, *LOOKS])
    sums = np.cumsum(drawn.standard_normal((1_000_000, len(LOOKS))) * np.sqrt(steps), axis=1)
    bounds = -ndtri(np.array(levels(LOOKS)) / 2) * np.sqrt(LOOKS)
    crossed = np.maximum.accumulate(np.abs(sums) >= bounds, axis=1).mean(axis=0)
    spent = [pocock_spending(now / 40, 0.05) for now in LOOKS]
    assert crossed == pytest.approx(spent, abs=4 * math.sqrt(0.05 / 1_000_000))


def test_one_level_for_all_of_the_usual_looks_would_be_near_theirs() -> None:
    # With quantiles of the normal: .0144. With Student's t, which is used, .0131 at these looks.
    together = levels(LOOKS)
    assert min(together) < 0.0144 < max(together)


@given(st.lists(st.integers(5, 100), min_size=1, max_size=7, unique=True).map(sorted))
def test_no_look_has_more_than_what_it_may_spend_and_none_has_nothing(information: list[int]) -> None:
    now = tuple(information)
    spent = [0.0, *(pocock_spending(n / now[-1], 0.05) for n in now)]
    for level, (before, after) in zip(levels(now), pairwise(spent), strict=True):
        # Paths that would have crossed before do not count again, so a level is above its increment.
        assert after - before <= level * (1 + 1e-9)
        assert level < 0.05 * (1 + 1e-9)


@given(st.lists(st.integers(5, 100), min_size=2, max_size=6, unique=True).map(sorted))
def test_a_level_depends_on_earlier_looks_alone(information: list[int]) -> None:
    errors = [pocock_spending(n / 100, 0.05) for n in information]
    full = nominal_levels(tuple(information), tuple(errors))
    for count in range(1, len(information)):
        assert nominal_levels(tuple(information[:count]), tuple(errors[:count])) == pytest.approx(
            full[:count], rel=1e-9
        )


@pytest.mark.parametrize(
    ("information", "spent"),
    [((5, 5), (0.01, 0.02)), ((5, 8), (0.02, 0.01)), ((5,), (0.01, 0.02)), ((0,), (0.1,))],
)
def test_looks_out_of_order_are_refused(information: tuple[int, ...], spent: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"look|error"):
        nominal_levels(information, spent)


def test_the_normal_tail_is_the_one_meant() -> None:
    assert 2 * float(ndtr(-1.959964)) == pytest.approx(levels((10,))[0], abs=1e-6)
