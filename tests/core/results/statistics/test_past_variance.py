import random

import pytest

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


def test_a_past_of_equal_days_counts_as_much_as_all_of_its_rounds() -> None:
    equal = variance_prior([PastVariance(variance=4e-4, degrees=9)] * 6)
    assert equal is not None
    assert equal.degrees == 54
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


def test_only_the_newest_matrices_count() -> None:
    new = [PastVariance(variance=1e-4, degrees=9)] * 6
    old = [PastVariance(variance=1.0, degrees=9)] * 6
    assert variance_prior([*new, *old]) == variance_prior(new)
