"""What looks at growing matrices do: false alarms, coverage and rounds, on simulated cells.

    python -m benchmarks.sequential [CELLS]

Every cell is decided by the farm's own functions (pairing, speedup, looks). Each start takes the time of its
cell times a normal deviation in logarithms; a round is one start of each side.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean

from benchmarks.simulated_start import simulated_start
from farm.core.matrices.rounds import SequentialRounds
from farm.core.results.looks.basis import compare_by_basis
from farm.core.results.looks.look import Look, missing_rounds, take_look
from farm.core.results.pairing import JoinedValue, paired_rounds
from farm.core.results.speedup import Speedup, speedup
from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.runs.measurement import Quality, Verdict

NOISE = 0.02
_NAMES_NO_DIFFERENCE = (Verdict.SAME, Verdict.UNDECIDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialFigures:
    """Shares of simulated cells, and their mean numbers of rounds and looks."""

    cells: int
    #: Named faster or slower at the end.
    named: float
    #: With a true ratio inside of the interval at the end.
    covered: float
    #: Called the same.
    same: float
    undecided: float
    rounds: float
    looks: float

    def row(self) -> str:
        """Return the figures as a row of a table."""
        return (
            f"{self.named:>8.1%}  {self.covered:>8.1%}  {self.same:>6.1%}  {self.undecided:>9.1%}"
            f"  {self.rounds:>6.1f}  {self.looks:>5.1f}"
        )


def simulate_looks(
    rounds: SequentialRounds,
    *,
    slowdown: float,
    noise: float = NOISE,
    invalid: float = 0.0,
    cells: int = 2000,
    seed: int = 1,
) -> SequentialFigures:
    """Let cells grow until they are decided.

    Args:
        rounds: of the matrix.
        slowdown: of the candidate, as a fraction; 0 for equal cells.
        noise: standard deviation of a start, in logarithms.
        invalid: share of starts that are not valid.
        cells: the number of them.
        seed: of the random numbers.
    """
    random = Random(seed)
    grow = partial(grow_cell, rounds, random, slowdown=slowdown, noise=noise, invalid=invalid)
    ends = [grow() for _ in range(cells)]
    truth = 1 / (1 + slowdown)
    results = [result for result, _, _ in ends]
    return SequentialFigures(
        cells=cells,
        named=fmean(result.verdict not in _NAMES_NO_DIFFERENCE for result in results),
        covered=fmean(
            bool(result.ci_low and result.ci_high and result.ci_low <= truth <= result.ci_high)
            for result in results
        ),
        same=fmean(result.verdict is Verdict.SAME for result in results),
        undecided=fmean(result.verdict is Verdict.UNDECIDED for result in results),
        rounds=fmean(count for _, count, _ in ends),
        looks=fmean(looks for _, _, looks in ends),
    )


def grow_cell(
    plan: SequentialRounds,
    random: Random,
    *,
    slowdown: float,
    noise: float,
    invalid: float = 0.0,
    family: int = 1,
) -> tuple[Speedup, int, int]:
    """Return the result of a cell that grows until it stops, its rounds and its looks.

    Args:
        plan: of its matrix.
        random: for its starts.
        slowdown: like the other arguments, of `simulate_looks`.
        noise: of a start.
        invalid: share of starts.
        family: the cells of its matrix.
    """
    sides: tuple[list[JoinedValue], list[JoinedValue]] = ([], [])
    looks: list[Look] = []
    rounds = plan.at_least
    while True:
        for side, factor in zip(sides, (1.0, 1 + slowdown), strict=True):
            side.extend(_starts(random, len(side) + 1, rounds, factor, noise, invalid))
        compare = partial(_compare, sides)
        look = take_look(plan, looks, compare, rounds=rounds, family=family)
        if look is not None:
            looks.append(look)
        if look is not None and look.stopped is not None:
            return compare_by_basis(compare, plan, looks, is_complete=True)[0], rounds, len(looks)
        usable = compare(CONFIDENCE).rounds if look is None else look.usable
        rounds = min(plan.at_most, rounds + missing_rounds(plan, looks, usable))


def _starts(
    random: Random, first: int, last: int, factor: float, noise: float, invalid: float
) -> Iterator[JoinedValue]:
    for round in range(first, last + 1):
        log = math.log(factor) + random.gauss(0.0, noise)
        quality = Quality.THROTTLED if random.random() < invalid else Quality.VALID
        yield simulated_start(round, log, quality=quality)


def _compare(sides: tuple[Sequence[JoinedValue], Sequence[JoinedValue]], confidence: float) -> Speedup:
    pairs, excluded = paired_rounds(*sides)
    return speedup(pairs, excluded=excluded, confidence=confidence)


def main(cells: int) -> None:
    """Print a table."""
    usual, narrow = SequentialRounds(), SequentialRounds(until=0.01)
    scenarios = (
        ("equal cells", usual, 0.0, 0.0),
        ("equal cells, 10 % of starts invalid", usual, 0.0, 0.1),
        ("equal cells, 20 % noise", usual, 0.0, 0.0),
        ("a true 3 %", usual, 0.03, 0.0),
        ("a true 5 %", usual, 0.05, 0.0),
        ("a true 5 %, 10 % of starts invalid", usual, 0.05, 0.1),
        ("a true 20 %", usual, 0.2, 0.0),
        ("equal cells, until 1 % wide", narrow, 0.0, 0.0),
        ("a true 5 %, until 1 % wide", narrow, 0.05, 0.0),
    )
    print(f"{cells} cells each, noise of a start {NOISE:.0%}, at least 5 and at most 40 rounds")
    heading = f"{'named':>8}  {'covered':>8}  {'same':>6}  {'undecided':>9}  {'rounds':>6}  {'looks':>5}"
    print(f"{'':36}  {heading}")
    for name, rounds, slowdown, invalid in scenarios:
        noise = 0.2 if "20 % noise" in name else NOISE
        figures = simulate_looks(rounds, slowdown=slowdown, noise=noise, invalid=invalid, cells=cells)
        print(f"{name:36}  {figures.row()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
