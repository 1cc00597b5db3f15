"""Rows of the calibration about gates: what fails without a difference, and what passes at the margin."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random
from typing import cast

import numpy as np

from benchmarks.calibration_row import Row, at_most, two_errors
from benchmarks.sequential import grow_cell
from benchmarks.simulated_start import simulated_start
from farm.cli.results.gate import Gate, deciding_rounds
from farm.core.matrices.rounds import SequentialRounds
from farm.core.results.pairing import paired_rounds
from farm.core.results.speedup import Speedup, speedup
from farm.core.results.statistics.families import AlarmShare, alarm_share
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
        aim=f"<= {GATE_ERROR:.2%}, two errors allowed",
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


def decided_gate_rows(random: np.random.Generator, matrices: int) -> Iterator[Row]:
    """Yield the answers of gates with `--decide`: rounds are added to each cell until it has an answer."""
    seed = int(random.integers(1 << 31))
    for noise in (0.02, 0.2):
        failed = decided_gates(200, seed=seed, noise=noise)[GateOutcome.SLOWER]
        yield Row(
            what=f"A/A gates of {_CELLS} cells, --decide, that fail, of 200, {noise:.0%} noise",
            measured=str(failed),
            aim="0",
            holds=failed == 0,
        )
    many = max(200, matrices // 2)
    for noise in (0.02, 0.2):
        failed = decided_gates(many, seed=seed, noise=noise, cells=1)[GateOutcome.SLOWER]
        share = alarm_share(failed, many)
        yield Row(
            what=f"  of {many:,} of one cell, {noise:.0%} noise: {interval_text(share)}",
            measured=f"{failed / many:.2%}",
            aim=f"<= {GATE_ERROR:.2%}",
            holds=share.low <= GATE_ERROR,
        )
    at_margin = decided_gates(many, seed=seed, noise=0.02, slower=_MARGIN, cells=1)
    yield at_most(
        "gates that pass, --decide, a candidate at the margin",
        at_margin[GateOutcome.PASSED] / many,
        0.025,
        allowed=two_errors(0.025, many),
    )
    for slower in (0.0, 0.1):
        right = GateOutcome.SLOWER if slower else GateOutcome.PASSED
        words = f"{slower:.0%} slower" if slower else "equal cells"
        outcomes = decided_gates(200, seed=seed, noise=0.02, slower=slower, cells=1)
        yield Row(
            what=f"gates that say `{right}`, {words}, 2 % noise, --decide",
            measured=f"{outcomes[right] / 200:.1%}",
            aim="",
            holds=True,
        )


def interval_text(share: AlarmShare) -> str:
    """Return the interval of a share: what so few gates cannot tell apart."""
    return f"{100 * share.low:.2f} to {100 * share.high:.2f} %"


def decided_gates(
    gates: int, *, seed: int, noise: float, slower: float = 0.0, cells: int = _CELLS
) -> Mapping[GateOutcome, int]:
    """Return how often gates had each answer, each over cells that grow until they are decided.

    The rounds are those of `--decide` without `--rounds`, and each cell has a baseline of its own.
    """
    plan = SequentialRounds(
        **cast(dict[str, int], deciding_rounds(None, Gate(margin=_MARGIN)))  # `not_slower` is a fraction.
    )
    random = Random(seed)
    return Counter(_decided_gate(plan, random, noise, slower, cells) for _ in range(gates))


def _decided_gate(
    plan: SequentialRounds, random: Random, noise: float, slower: float, cells: int
) -> GateOutcome:
    # The farm counts all cells of a matrix, the baseline among them.
    ends = [grow_cell(plan, random, slowdown=slower, noise=noise, family=cells + 1) for _ in range(cells)]
    results = [result for result, _, _ in ends]
    return judge_gate(results, margin=_MARGIN, looks=len(plan.schedule))[0]


def _gate(random: np.random.Generator, *, noise: float, slower: float, cells: int = _CELLS) -> GateOutcome:
    comparisons = [_compare(random, noise, slower) for _ in range(cells)]
    return judge_gate(comparisons, margin=_MARGIN)[0]


def _compare(random: np.random.Generator, noise: float, slower: float) -> Speedup:
    logs = random.normal(0.0, noise, (2, _ROUNDS))
    logs[1] += math.log1p(slower)
    sides = [[simulated_start(round, log) for round, log in enumerate(side)] for side in logs.tolist()]
    pairs, excluded = paired_rounds(*sides)
    return speedup(pairs, excluded=excluded)
