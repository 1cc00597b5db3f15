"""Rows of the calibration about gates: what fails without a difference, and what passes at the margin."""

import math
from collections.abc import Iterator

import numpy as np

from benchmarks.calibration_row import Row, at_most, two_errors
from benchmarks.simulated_start import simulated_start
from farm.core.results.pairing import paired_rounds
from farm.core.results.speedup import Speedup, speedup
from farm.core.results.statistics.gate import GATE_ERROR, GateOutcome, judge_gate

_MARGIN = 0.03
_ROUNDS, _CELLS = 10, 8


def gate_rows(random: np.random.Generator, matrices: int) -> Iterator[Row]:
    """Yield the answers of gates of eight cells and ten rounds, and of single cells."""
    for noise in (0.02, 0.2):
        outcomes = [_gate(random, noise=noise, slower=0.0) for _ in range(200)]
        failed = outcomes.count(GateOutcome.SLOWER)
        yield Row(
            what=f"A/A gates of {_CELLS} cells that fail, of 200, {noise:.0%} noise",
            measured=str(failed),
            aim="0",
            holds=failed == 0,
        )
    many = max(200, matrices // 2)
    failed = sum(_gate(random, noise=0.2, slower=0.0, cells=1) is GateOutcome.SLOWER for _ in range(many))
    yield Row(
        what=f"  of {many:,} gates of one cell, 20 % noise",
        measured=f"{failed / many:.2%}",
        aim=f"<= {GATE_ERROR:.2%}",
        holds=failed / many <= GATE_ERROR + two_errors(GATE_ERROR, many),
    )
    at_margin = [_gate(random, noise=0.02, slower=_MARGIN, cells=1) for _ in range(many)]
    passed = at_margin.count(GateOutcome.PASSED) / many
    yield at_most(
        "gates that pass, a candidate at the margin", passed, 0.025, allowed=two_errors(0.025, many)
    )
    for slower in (0.0, 0.1):
        outcomes = [_gate(random, noise=0.02, slower=slower, cells=1) for _ in range(200)]
        right = GateOutcome.SLOWER if slower else GateOutcome.PASSED
        words = f"{slower:.0%} slower" if slower else "equal cells"
        yield Row(
            what=f"gates that say `{right}`, {words}, 2 % noise, 10 rounds",
            measured=f"{outcomes.count(right) / 200:.1%}",
            aim="",
            holds=True,
        )


def _gate(random: np.random.Generator, *, noise: float, slower: float, cells: int = _CELLS) -> GateOutcome:
    comparisons = [_compare(random, noise, slower) for _ in range(cells)]
    return judge_gate(comparisons, margin=_MARGIN)[0]


def _compare(random: np.random.Generator, noise: float, slower: float) -> Speedup:
    logs = random.normal(0.0, noise, (2, _ROUNDS))
    logs[1] += math.log1p(slower)
    sides = [[simulated_start(round, log) for round, log in enumerate(side)] for side in logs.tolist()]
    pairs, excluded = paired_rounds(*sides)
    return speedup(pairs, excluded=excluded)
