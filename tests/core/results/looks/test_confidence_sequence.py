"""A confidence sequence holds at all numbers of rounds at once."""

import math

import numpy as np
import pytest

from farm.core.results.looks.confidence_sequence import ANYTIME_ERROR, anytime_confidence
from farm.core.runs.stats import t_quantile


def test_whoever_stops_at_the_first_alarm_is_wrong_in_five_per_cent_at_most() -> None:
    drawn = np.random.default_rng(3).standard_normal((20_000, 100))
    sums, squares = drawn.cumsum(axis=1), (drawn**2).cumsum(axis=1)
    is_wrong = np.zeros(len(drawn), dtype=bool)
    for rounds in range(5, 101):
        mean = sums[:, rounds - 1] / rounds
        variance = (squares[:, rounds - 1] - rounds * mean**2) / (rounds - 1)
        t = np.abs(mean) / np.sqrt(variance / rounds)
        is_wrong |= t > t_quantile((1 + anytime_confidence(rounds)) / 2, rounds - 1)
    assert is_wrong.mean() <= ANYTIME_ERROR


def test_with_a_planned_look_at_the_first_matrix_all_looks_together_are_wrong_in_five_and_a_half() -> None:
    drawn = np.random.default_rng(5).standard_normal((20_000, 100))
    is_wrong = np.zeros(len(drawn), dtype=bool)
    for rounds in range(5, 101, 5):
        seen = drawn[:, :rounds]
        t = np.abs(seen.mean(axis=1)) / (seen.std(axis=1, ddof=1) / math.sqrt(rounds))
        confidence = 0.95 if rounds == 5 else anytime_confidence(rounds)
        is_wrong |= t > t_quantile((1 + confidence) / 2, rounds - 1)
    assert is_wrong.mean() <= 0.055


@pytest.mark.parametrize("rounds", [5, 8, 20, 100])
def test_its_bound_is_where_the_mixture_is_one_over_alpha(rounds: int) -> None:
    t = t_quantile((1 + anytime_confidence(rounds)) / 2, rounds - 1)
    spread, degrees = 1 + 4.0 * rounds, rounds - 1
    ratio = (1 + t * t / degrees) / (1 + t * t / (degrees * spread))
    assert math.sqrt(1 / spread) * ratio ** (rounds / 2) == pytest.approx(1 / ANYTIME_ERROR, rel=1e-6)


def test_the_mixture_is_the_integral_over_effects() -> None:
    # By simulation of its definition: the likelihood of t, averaged over effects, over that without any.
    from scipy.stats import nct, norm
    from scipy.stats import t as student

    rounds, value = 8, 4.0
    effects = np.linspace(-12, 12, 4001)
    weights = norm.pdf(effects, scale=2.0)
    densities = nct.pdf(value, rounds - 1, effects * math.sqrt(rounds))
    mixture = np.trapezoid(weights * densities, effects) / student.pdf(value, rounds - 1)
    spread, degrees = 1 + 4.0 * rounds, rounds - 1
    ratio = (1 + value**2 / degrees) / (1 + value**2 / (degrees * spread))
    assert mixture == pytest.approx(math.sqrt(1 / spread) * ratio ** (rounds / 2), rel=1e-4)


def test_too_few_rounds_have_no_interval() -> None:
    assert [anytime_confidence(rounds) for rounds in (0, 1, 2, 3)] == [1.0] * 4
