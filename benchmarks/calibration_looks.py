"""Rows of the calibration about looks: matrices that grow, and pairs asked again after each matrix."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.calibration_row import Row, at_most, two_errors
from benchmarks.sequential import simulate_looks
from benchmarks.simulated_start import simulated_start
from farm.core.matrices.rounds import SequentialRounds
from farm.core.results.looks.basis import compare_by_basis
from farm.core.results.pairing import RoundPair, paired_rounds
from farm.core.results.speedup import Speedup, speedup
from farm.core.results.statistics.verdict import DIRECTED

#: Looks have a wider aim than single intervals: levels are exact for a known variance only.
_AIM = 0.055
_NOISE = 0.02


def sequential_rows(random: np.random.Generator, matrices: int) -> Iterator[Row]:
    """Yield what `benchmarks/sequential.py` has for its usual cells, with fewer of them."""
    cells = max(1, matrices // 3)
    simulate = partial(simulate_looks, SequentialRounds(), cells=cells, seed=int(random.integers(1 << 31)))
    equal = simulate(slowdown=0.0)
    allowed = two_errors(_AIM, cells)
    yield at_most("A/A alarms, matrices that grow", equal.named, _AIM, allowed=allowed)
    for words, slowdown in (("equal cells", 0.0), ("a true 3 %", 0.03)):
        covered = equal.covered if not slowdown else simulate(slowdown=slowdown).covered
        yield Row(
            what=f"coverage of {words}, matrices that grow",
            measured=f"{covered:.1%}",
            aim=">= 94 %",
            holds=covered >= 0.94 - allowed,
        )
    rounds = simulate(slowdown=0.05).rounds
    yield Row(
        what="rounds until a true 5 % is decided, mean",
        measured=f"{rounds:.1f}",
        aim="<= 8",
        holds=rounds <= 8,
    )


def pooled_rows(random: np.random.Generator, matrices: int) -> Iterator[Row]:
    """Yield A/A alarms of who asks `farm speedups` again after each of twenty equal matrices.

    The first matrix is alone, and its interval the planned one; from the second on rounds are pooled.
    """
    pairs = max(1, matrices // 5)
    for rounds in (5, 10):
        ever = sum(_alarms_at_any_look(random, rounds=rounds, matrices=20) for _ in range(pairs)) / pairs
        what = f"A/A alarms at any of 20 looks, pooled, {rounds} rounds each"
        yield at_most(what, ever, _AIM, allowed=two_errors(_AIM, pairs))


def _alarms_at_any_look(random: np.random.Generator, *, rounds: int, matrices: int) -> bool:
    logs = random.normal(0.0, _NOISE, (2, rounds * matrices)).tolist()
    sides = [[simulated_start(round, log) for round, log in enumerate(side)] for side in logs]
    pairs, _ = paired_rounds(*sides)
    for count in range(1, matrices + 1):
        measured = pairs[: count * rounds]
        result, _ = compare_by_basis(partial(_compare, measured), len(measured), (), is_complete=count == 1)
        if result.verdict in DIRECTED:
            return True
    return False


def _compare(pairs: list[RoundPair], confidence: float) -> Speedup:
    return speedup(pairs, confidence=confidence)
