import math
import random

import pytest

from farm.core.results.statistics.interval import log_interval
from farm.core.results.statistics.past_variance import PastVariance, variance_prior


def drawn(
    source: random.Random, matrices: int, *, spread: float = 0.0, degrees: int = 9
) -> list[PastVariance]:
    """The variances of matrices whose true one is 4e-4, times a factor of the day."""
    return [
        PastVariance(
            variance=4e-4
            * source.lognormvariate(0.0, spread)
            * source.gammavariate(degrees / 2, 2 / degrees),
            degrees=degrees,
        )
        for _ in range(matrices)
    ]


def test_fewer_than_three_matrices_say_nothing() -> None:
    assert variance_prior(drawn(random.Random(1), 2)) is None
    assert variance_prior([PastVariance(variance=0.0, degrees=9)] * 5) is None


def test_a_past_of_equal_days_counts_about_as_much_as_all_of_its_rounds() -> None:
    equal = variance_prior([PastVariance(variance=4e-4, degrees=9)] * 6)
    assert equal is not None
    assert 45 < equal.degrees <= 54
    assert equal.matrices == 6


def test_the_expected_variance_is_that_of_the_past() -> None:
    source = random.Random(2)
    priors = [variance_prior(drawn(source, 6)) for _ in range(300)]
    values = [prior.variance for prior in priors if prior]
    assert sum(values) / len(values) == pytest.approx(4e-4, rel=0.1)


def test_days_that_differ_count_less() -> None:
    source = random.Random(3)
    even = [variance_prior(drawn(source, 6)) for _ in range(200)]
    uneven = [variance_prior(drawn(source, 6, spread=1.2)) for _ in range(200)]
    mean = [sum(prior.degrees for prior in priors if prior) / 200 for priors in (even, uneven)]
    assert mean[1] < mean[0] / 2


@pytest.mark.parametrize(("matrices", "spread"), [(6, 0.0), (6, 0.6), (3, 1.2)])
def test_equal_cells_alarm_in_five_per_cent_however_much_days_differ(matrices: int, spread: float) -> None:
    source = random.Random(5)
    alarms, count = 0, 3000
    for _ in range(count):
        prior = variance_prior(drawn(source, matrices, spread=spread))
        deviation = math.sqrt(4e-4 * source.lognormvariate(0.0, spread))
        interval = log_interval([source.gauss(0.0, deviation) for _ in range(5)], prior=prior)
        alarms += interval.low > 0 or interval.high < 0
    # Two standard errors above 5 %; moments as for thousands of genes gave 6.5 % of three matrices.
    assert alarms / count <= 0.058


def test_only_the_newest_matrices_count() -> None:
    new = [PastVariance(variance=1e-4, degrees=9)] * 6
    old = [PastVariance(variance=1.0, degrees=9)] * 6
    assert variance_prior([*new, *old]) == variance_prior(new)
