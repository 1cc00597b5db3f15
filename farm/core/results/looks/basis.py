"""The basis of a cell's interval: all rounds that were planned, a look at a growing matrix, or neither."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from farm.core.matrices.matrix import Rounds
from farm.core.results.looks.confidence_sequence import anytime_confidence
from farm.core.results.looks.look import Compare, Look, LookStop
from farm.core.results.speedup import Speedup
from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.runs.measurement import Verdict


class IntervalKind(StrEnum):
    """The rule that gives an interval its confidence."""

    #: All rounds were run that the matrix had planned: the one look that was planned.
    PLANNED = "planned"
    #: A look at a matrix that grows: its share of the error, farm.core.results.looks.spending.
    LOOK = "look"
    #: A look that was not planned, before all rounds are run: farm.core.results.looks.confidence_sequence.
    ANYTIME = "anytime"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBasis:
    """What an interval rests on."""

    kind: IntervalKind
    #: Of the single interval; over all looks together it is 95 %. None without an interval.
    confidence: float | None
    #: The looks that were had, and those that there may be; 0 unless the matrix grows.
    look: int = 0
    looks: int = 0
    #: The reason that the cell gets no further rounds; None while it may get some, and of other matrices.
    stopped: LookStop | None = None


def rounds_of_last_look(looks: Sequence[Look]) -> int | None:
    """Return the last round that enters the interval of a cell; None: all do."""
    return next((look.rounds for look in reversed(looks) if look.level is not None), None)


def compare_by_basis(
    compare: Compare, rounds: Rounds, looks: Sequence[Look], *, is_complete: bool
) -> tuple[Speedup, IntervalBasis]:
    """Compare a cell with the confidence that its looks leave to it.

    Args:
        compare: over the rounds that `rounds_of_last_look` names.
        rounds: of its matrix.
        looks: at the cell, oldest first.
        is_complete: whether all rounds of the cell that were planned are run.
    """
    if isinstance(rounds, int):
        usable = compare(CONFIDENCE)
        if is_complete or usable.ci_low is None:
            return usable, IntervalBasis(kind=IntervalKind.PLANNED, confidence=CONFIDENCE)
        confidence = anytime_confidence(usable.pairs)
        return compare(confidence), IntervalBasis(kind=IntervalKind.ANYTIME, confidence=confidence)
    seen = [look for look in looks if look.level is not None]
    basis = IntervalBasis(
        kind=IntervalKind.LOOK,
        confidence=seen[-1].confidence if seen else None,
        look=len(seen),
        looks=len(rounds.schedule),
        stopped=looks[-1].stopped if looks else None,
    )
    if basis.confidence is not None:
        return compare(basis.confidence), basis
    result = compare(CONFIDENCE)
    if result.ci_low is None:
        return result, basis
    reason = f"its first look is at {rounds.schedule[0]} usable rounds, once the device has run them all"
    without = replace(
        result,
        ci_low=None,
        ci_high=None,
        detectable=None,
        p_value=None,
        not_slower=None,
        log_error=None,
        degrees=None,
        verdict=Verdict.UNDECIDED,
        reason=reason,
    )
    return without, basis
