"""Summary of the rounds of one cell, without a baseline: median, range, and an interval of their level."""

import math
from collections.abc import Sequence
from statistics import median

from farm.core.results.statistics.interval import bounded_exp, log_interval
from farm.core.runs.measurement import MIN_ROUNDS, CellSummary


def summarize_cell(values: Sequence[float]) -> CellSummary:
    """Summarize rounds.

    The interval is Student's t over the rounds' logarithms: that of their geometric mean, made wide enough to
    hold their median.

    Args:
        values: at least one; without an interval where one is not above zero.
    """
    middle = median(values)
    interval = _value_interval(values)
    return CellSummary(
        rounds=len(values),
        median=middle,
        low=min(values),
        high=max(values),
        ci_low=min(interval[0], middle) if interval else None,
        ci_high=max(interval[1], middle) if interval else None,
    )


def _value_interval(values: Sequence[float]) -> tuple[float, float] | None:
    if len(values) < MIN_ROUNDS or min(values) <= 0:
        return None
    interval = log_interval([math.log(value) for value in values])
    return bounded_exp(interval.low), bounded_exp(interval.high)
