"""Looks at growing matrices keep their promises on simulated cells, by the farm's own functions."""

import pytest

from benchmarks.calibration_gates import decided_gates
from benchmarks.sequential import simulate_looks
from farm.core.matrices.rounds import SequentialRounds
from farm.core.results.statistics.families import alarm_share
from farm.core.results.statistics.gate import GATE_ERROR, GateOutcome

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


@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_of_200_gates_that_add_rounds_until_they_are_decided_none_blames_for_nothing(noise: float) -> None:
    outcomes = decided_gates(200, seed=11, noise=noise)
    assert outcomes[GateOutcome.SLOWER] == 0
    share = alarm_share(decided_gates(1600, seed=12, noise=noise, cells=1)[GateOutcome.SLOWER], 1600)
    assert share.low <= GATE_ERROR


def test_a_gate_that_adds_rounds_finds_what_is_slower_and_passes_what_is_equal() -> None:
    assert decided_gates(100, seed=11, noise=0.02, slower=0.1, cells=1)[GateOutcome.SLOWER] >= 99
    assert decided_gates(100, seed=11, noise=0.02, cells=1)[GateOutcome.PASSED] >= 90
