"""Summary of one cell over its rounds, without a comparison."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from farm.core.results.speedup import CONFIDENCE
from farm.core.runs.stats import t_quantile
from farm.core.runs.verdict import MIN_ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSummary:
    """Values of rounds, each one process start. The interval, from five rounds on, holds the median."""

    rounds: int
    median: float
    low: float
    high: float
    ci_low: float | None
    ci_high: float | None


def summarize_cell(values: Sequence[float]) -> CellSummary:
    """Summarize rounds.

    The interval is Student's t over the rounds' logarithms: that of their geometric mean, made wide enough to
    hold their median.

    Args:
        values: at least one; without an interval where one is not above zero.
    """
    middle = median(values)
    interval = _interval(values)
    return CellSummary(
        rounds=len(values),
        median=middle,
        low=min(values),
        high=max(values),
        ci_low=min(interval[0], middle) if interval else None,
        ci_high=max(interval[1], middle) if interval else None,
    )


def _interval(values: Sequence[float]) -> tuple[float, float] | None:
    count = len(values)
    if count < MIN_ROUNDS or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / count
    variance = math.fsum((log - mean) ** 2 for log in logs) / (count - 1)
    reach = t_quantile((1 + CONFIDENCE) / 2, count - 1) * math.sqrt(variance / count)
    # Bounded, so that values of absurd width do not overflow.
    return math.exp(max(mean - reach, -700.0)), math.exp(min(mean + reach, 700.0))
