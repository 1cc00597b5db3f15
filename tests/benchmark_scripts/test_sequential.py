"""Looks at growing matrices keep their promises on simulated cells, by the farm's own functions."""

import pytest

from benchmarks.sequential import simulate_looks
from farm.core.matrices.rounds import SequentialRounds

pytestmark = pytest.mark.long

USUAL = SequentialRounds()


def test_equal_cells_are_named_in_five_per_cent_and_covered_in_ninety_four() -> None:
    figures = simulate_looks(USUAL, slowdown=0.0, cells=3000, seed=11)
    # Three standard errors of a share of 5 % above what ten times as many cells gave.
    assert figures.named <= 0.05 + 0.012
    assert figures.covered >= 0.94 - 0.012


def test_a_true_difference_of_five_per_cent_is_found_within_eight_rounds_on_average() -> None:
    figures = simulate_looks(USUAL, slowdown=0.05, cells=500, seed=11)
    assert figures.named >= 0.99
    assert figures.rounds <= 8.0


def test_invalid_starts_cost_rounds_and_change_no_promise() -> None:
    figures = simulate_looks(USUAL, slowdown=0.0, invalid=0.1, cells=1500, seed=11)
    assert figures.named <= 0.05 + 0.017
    assert figures.covered >= 0.94 - 0.017
