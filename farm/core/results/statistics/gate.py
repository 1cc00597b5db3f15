"""The gate of a change: is a candidate slower than a margin allows, on any device?

A candidate **passes** where its interval rules out that it is slower by more than the margin. All of them
together are a test of the level of each (Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling",
Technometrics 24(4), 1982). It **fails** where its interval is beyond the margin, and stands beside all others
of the gate at a level at which hundreds of gates without any difference have no failure: who was blamed twice
for nothing looks at no gate again. Everything between is **undecided**, which does not pass.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from farm.core.errors import EXIT_CODES
from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.results.statistics.verdict import is_not_slower
from farm.core.runs.measurement import MIN_ROUNDS
from farm.core.runs.stats import t_probability, t_quantile

#: The chance that a gate fails although no candidate is slower than the margin, over all of its comparisons.
GATE_ERROR = 0.0005
#: Further rounds beyond these are not named: so close to the margin, no one waits for an answer.
MAX_FURTHER_ROUNDS = 1000


class GateOutcome(StrEnum):
    """What a gate says once everything ran."""

    #: Every comparison rules out that the candidate is slower than the gate allows.
    PASSED = "passed"
    #: A candidate is shown to be slower than that.
    SLOWER = "slower"
    #: Neither, for one comparison at least.
    UNDECIDED = "undecided"
    #: There is no comparison with both sides.
    NOT_MEASURED = "not_measured"

    @property
    def exit_code(self) -> int:
        """Return the exit code of a command with a gate."""
        return EXIT_CODES[self]


class GatedComparison(Protocol):
    """A comparison, as the farm computes it or as its document has it."""

    @property
    def baseline_ns(self) -> float | None: ...
    @property
    def candidate_ns(self) -> float | None: ...
    @property
    def ci_low(self) -> float | None: ...
    @property
    def ci_high(self) -> float | None: ...
    @property
    def rounds(self) -> int: ...
    @property
    def log_error(self) -> float | None: ...
    @property
    def degrees(self) -> float | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """What the gate says of one comparison."""

    outcome: GateOutcome
    #: Rounds that would decide it, if its speedup stays and its rounds scatter as they did; 0 where it is
    #: decided or was never measured, None where they would be more than 1000.
    further_rounds: int | None = 0


def judge_gate(
    comparisons: Sequence[GatedComparison], *, margin: float, looks: int = 1, family: int | None = None
) -> tuple[GateOutcome, list[GateRow]]:
    """Return what a gate says, as a whole and of each comparison.

    Args:
        comparisons: those that are asked; A/A pairs are none.
        margin: by how much a candidate may be slower, as a fraction.
        looks: so often the same comparisons are inspected at most.
        family: the number of comparisons, where only some of them are at hand.
    """
    level = GATE_ERROR / max(1, (len(comparisons) if family is None else family) * looks)
    rows = [_judge(comparison, margin, level) for comparison in comparisons]
    return _whole(row.outcome for row in rows), rows


def _whole(outcomes: Iterable[GateOutcome]) -> GateOutcome:
    each = set(outcomes)
    if GateOutcome.SLOWER in each:
        return GateOutcome.SLOWER
    if each <= {GateOutcome.NOT_MEASURED}:
        return GateOutcome.NOT_MEASURED
    return GateOutcome.PASSED if each == {GateOutcome.PASSED} else GateOutcome.UNDECIDED


def _judge(comparison: GatedComparison, margin: float, level: float) -> GateRow:
    low, high = comparison.ci_low, comparison.ci_high
    baseline_ns, candidate_ns = comparison.baseline_ns, comparison.candidate_ns
    if not baseline_ns or not candidate_ns:
        return GateRow(outcome=GateOutcome.NOT_MEASURED)
    if low is None or high is None:
        return GateRow(outcome=GateOutcome.UNDECIDED, further_rounds=max(1, MIN_ROUNDS - comparison.rounds))
    if low > 0 and is_not_slower(math.log(low), margin=margin):
        return GateRow(outcome=GateOutcome.PASSED)
    distance = math.log(baseline_ns / candidate_ns) + math.log1p(margin)
    error, degrees = comparison.log_error, comparison.degrees
    if error is None or degrees is None:
        return GateRow(outcome=GateOutcome.UNDECIDED, further_rounds=None)
    if high * (1 + margin) < 1 and _is_shown(distance, error, degrees, level):
        return GateRow(outcome=GateOutcome.SLOWER)
    further = _further_rounds(distance, error, degrees, comparison.rounds, level)
    return GateRow(outcome=GateOutcome.UNDECIDED, further_rounds=further)


def _is_shown(distance: float, error: float, degrees: float, level: float) -> bool:
    """Tell whether a candidate so far below the margin, on the log scale, is slower at a one-sided level."""
    if error == 0.0:
        return distance < 0
    return t_probability(distance / error, degrees) <= level


def _further_rounds(distance: float, error: float, degrees: float, rounds: int, level: float) -> int | None:
    """Return how many more rounds would decide at this distance from the margin, by bisection."""

    def decides(more: int) -> bool:
        then = degrees + more
        narrower = error * math.sqrt(rounds / (rounds + more))
        if distance > 0:
            return distance > t_quantile((1 + CONFIDENCE) / 2, then) * narrower
        return _is_shown(distance, narrower, then, level)

    if not decides(MAX_FURTHER_ROUNDS):
        return None
    least, most = 0, MAX_FURTHER_ROUNDS
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if decides(middle) else (middle, most)
    return most
