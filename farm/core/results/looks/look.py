"""A look at a cell of a matrix that grows: its interval at that time, and whether it needs further rounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from farm.core.matrices.rounds import SequentialRounds
from farm.core.results.looks.spending import SPENT_ERROR, nominal_levels, pocock_spending
from farm.core.results.speedup import Speedup
from farm.core.results.statistics.gate import GateOutcome, judge_gate
from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.runs.measurement import MIN_ROUNDS, Verdict

#: A cell whose unusable rounds are more than its usable ones by this number gets no further ones.
_UNUSABLE_LEAD = 5


class LookStop(StrEnum):
    """The reason that a cell gets no further rounds."""

    #: It has a verdict, or an answer to the gate.
    DECIDED = "decided"
    #: Its interval is as narrow as the matrix asks.
    NARROW = "narrow"
    #: It had all rounds that the matrix allows.
    LAST = "last"
    #: Too few of its rounds are usable: more would hardly be.
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen at a look, stored so that a later question gives the same interval."""

    #: From 1; a cell that stops without a look has a number, too, and no level.
    number: int
    #: Rounds of its device at that time; only these entered.
    rounds: int
    #: Rounds that counted.
    usable: int
    #: The two-sided error of its interval; None where no look could be taken.
    level: float | None
    #: The error spent up to it.
    spent: float | None
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    verdict: Verdict = Verdict.UNDECIDED
    #: None while it goes on.
    stopped: LookStop | None = None

    @property
    def confidence(self) -> float | None:
        """Return the confidence of its interval."""
        return None if self.level is None else 1 - self.level


#: Compares the sides of a cell, over the rounds at hand, with an interval of a confidence.
Compare = Callable[[float], Speedup]


def take_look(
    plan: SequentialRounds, past: Sequence[Look], compare: Compare, *, rounds: int, family: int = 1
) -> Look | None:
    """Look at a cell once the rounds of its device are over; None while its next look is not due.

    When a look is due depends on the number of usable rounds alone, never on their values, as spending
    demands. The last one may spend all that is left, however many rounds were usable.

    Args:
        plan: of its matrix.
        past: its looks so far, oldest first; none of them stopped it.
        compare: over all rounds up to `rounds`.
        rounds: that its device has run.
        family: the cells of its matrix, which a gate judges together.
    """
    usable = compare(CONFIDENCE).rounds
    is_last = rounds >= plan.at_most
    seen = [look for look in past if look.level is not None]
    before = seen[-1].usable if seen else MIN_ROUNDS - 1
    is_due = usable > before and (is_last or usable >= next_target(plan, before))
    if not is_due:
        if not is_last and rounds - 2 * usable < _UNUSABLE_LEAD:
            return None
        return _stop_without_interval(
            past, LookStop.LAST if is_last else LookStop.UNUSABLE, rounds=rounds, usable=usable
        )
    spent = SPENT_ERROR if is_last else pocock_spending(usable / plan.at_most)
    earlier = [(look.usable, look.spent or 0.0) for look in seen]
    information, errors = zip(*earlier, (usable, spent), strict=True)
    level = nominal_levels(information, errors)[-1]
    result = compare(1 - level)
    return Look(
        number=len(past) + 1,
        rounds=rounds,
        usable=usable,
        level=level,
        spent=spent,
        ratio=result.ratio,
        ci_low=result.ci_low,
        ci_high=result.ci_high,
        verdict=result.verdict,
        stopped=_stop(plan, result, is_last=is_last, family=family),
    )


def unusable_look(past: Sequence[Look], *, rounds: int) -> Look:
    """Return the end of a cell whose jobs are not run any more."""
    return _stop_without_interval(past, LookStop.UNUSABLE, rounds=rounds, usable=0)


def _stop_without_interval(past: Sequence[Look], stopped: LookStop, *, rounds: int, usable: int) -> Look:
    return Look(number=len(past) + 1, rounds=rounds, usable=usable, level=None, spent=None, stopped=stopped)


def _stop(plan: SequentialRounds, result: Speedup, *, is_last: bool, family: int) -> LookStop | None:
    if plan.not_slower is not None:
        looks = len(plan.schedule)
        outcome, _ = judge_gate([result], margin=plan.not_slower, looks=looks, family=family)
        if outcome in (GateOutcome.PASSED, GateOutcome.SLOWER):
            return LookStop.DECIDED
    elif plan.until is None:
        if result.verdict is not Verdict.UNDECIDED:
            return LookStop.DECIDED
    elif half_width(result.ci_low, result.ci_high) <= plan.until:
        return LookStop.NARROW
    return LookStop.LAST if is_last else None


def half_width(ci_low: float | None, ci_high: float | None) -> float:
    """Return how far an interval reaches to each side, as a fraction: 0.01 is from r/1.01 to r x 1.01."""
    if not ci_low or not ci_high:
        return math.inf
    return math.sqrt(ci_high / ci_low) - 1


def next_target(plan: SequentialRounds, usable: int) -> int:
    """Return the usable rounds at which the next look is due, after one at `usable`."""
    return next((rounds for rounds in plan.schedule if rounds > usable), plan.at_most)


def missing_rounds(plan: SequentialRounds, past: Sequence[Look], usable: int) -> int:
    """Return how many more rounds the next look of a cell needs; at least 1."""
    seen = [look.usable for look in past if look.level is not None]
    return max(1, next_target(plan, seen[-1] if seen else MIN_ROUNDS - 1) - usable)
