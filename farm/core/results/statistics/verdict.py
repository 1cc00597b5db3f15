"""Verdicts: where an interval lies against 1 and against the equivalence margin."""

import math

from farm.core.runs.measurement import Verdict

#: Verdicts whose interval does not hold 1: between equal cells they are false alarms.
DIRECTED = frozenset(
    {
        Verdict.FASTER,
        Verdict.FASTER_SIZE_OPEN,
        Verdict.FASTER_WITHIN,
        Verdict.SLOWER,
        Verdict.SLOWER_SIZE_OPEN,
        Verdict.SLOWER_WITHIN,
    }
)


def verdict_on(low: float, high: float, *, margin: float) -> tuple[Verdict, str]:
    """Return the verdict on an interval of the logarithm of a speedup, and its reason.

    The margin is symmetric on the log scale: 2 % means from 1/1.02 to 1.02. `same` is Schuirmann's two
    one-sided tests, each at half of what the interval leaves out.
    """
    limit = math.log1p(margin)
    if low > 0:
        return _directed(low, high, limit, f"{margin:.1%}", above=True)
    if high < 0:
        return _directed(-high, -low, limit, f"{margin:.1%}", above=False)
    if -limit <= low and high <= limit:
        return Verdict.SAME, f"the interval lies within {margin:.1%} of 1"
    return Verdict.UNDECIDED, f"the interval spans 1 and reaches beyond {margin:.1%} of it"


def _directed(near: float, far: float, limit: float, margin: str, *, above: bool) -> tuple[Verdict, str]:
    """Return the verdict on an interval on one side of 1, by the distances of its ends from it."""
    side = "above" if above else "below"
    if near > limit:
        verdict = Verdict.FASTER if above else Verdict.SLOWER
        return verdict, f"the whole interval is {side} 1, by more than {margin}"
    if far <= limit:
        verdict = Verdict.FASTER_WITHIN if above else Verdict.SLOWER_WITHIN
        return verdict, f"the whole interval is {side} 1, by {margin} at most"
    verdict = Verdict.FASTER_SIZE_OPEN if above else Verdict.SLOWER_SIZE_OPEN
    return verdict, f"the whole interval is {side} 1, and reaches from less than {margin} to more"


def is_not_slower(low: float, *, margin: float) -> bool:
    """Tell whether an interval from `low` rules out that the candidate is slower by more than the margin."""
    return low > -math.log1p(margin)


def verdict_text(verdict: Verdict, *, margin: float) -> str:
    """Return a verdict as tables show it: `slower, within 2 %`."""
    match verdict:
        case Verdict.FASTER_WITHIN | Verdict.SLOWER_WITHIN:
            return f"{_direction(verdict)}, within {100 * margin:.3g} %"
        case Verdict.FASTER_SIZE_OPEN | Verdict.SLOWER_SIZE_OPEN:
            return f"{_direction(verdict)}, size open"
        case _:
            return str(verdict)


def _direction(verdict: Verdict) -> str:
    return verdict.partition("_")[0]
