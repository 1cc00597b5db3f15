"""Many comparisons at once: what chance alone would name, and what stands beside all others."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.core.results.statistics.interval import CONFIDENCE

#: The share of the rows that stand which is expected to be chance.
FALSE_DISCOVERIES = 0.05


def discoveries(p_values: Sequence[float], *, rate: float = FALSE_DISCOVERIES) -> list[bool]:
    """Return which rows of a family differ from 1 when all are judged together.

    Benjamini and Hochberg, "Controlling the False Discovery Rate", Journal of the Royal Statistical Society B
    57(1), 1995. Rows that share a baseline depend on each other positively, which it allows (Benjamini and
    Yekutieli, Annals of Statistics 29(4), 2001).
    """
    count = len(p_values)
    limit = max(
        (p for rank, p in enumerate(sorted(p_values), start=1) if p <= rate * rank / count),
        default=-1.0,
    )
    return [p <= limit for p in p_values]


def named_by_chance(rows: int) -> float:
    """Return in how many of `rows` without any difference an interval is expected to leave out 1."""
    return rows * (1 - CONFIDENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmShare:
    """A/A pairs of a phone in its last matrices whose interval left out 1, with that of their share."""

    alarms: int
    pairs: int
    low: float
    high: float


def alarm_share(alarms: int, pairs: int) -> AlarmShare:
    """Return the share of alarms: Clopper and Pearson's exact interval, Biometrika 26(4), 1934."""
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(alarms, pairs - alarms + 1, tail)) if alarms else 0.0
    high = float(betaincinv(alarms + 1, pairs - alarms, 1 - tail)) if alarms < pairs else 1.0
    return AlarmShare(alarms=alarms, pairs=pairs, low=low, high=high)
