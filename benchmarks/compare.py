"""Comparison of two arms of a benchmark that were measured in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, nan, sqrt
from statistics import mean, median, stdev

from farm.core.runs.stats import t_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One arm's figure over the other's: of all pairs together, and its 95 % interval over the pairs."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} (95 %: {self.low:.3f} to {self.high:.3f})"


def ratio(ones: Sequence[float], others: Sequence[float]) -> Ratio:
    """Compare figures of pairs that were taken next to each other.

    The value is that of the sums; the interval is Student's t over the pairs' log ratios.
    """
    return _ratio(sum(ones) / sum(others), ones, others)


def ratio_of_medians(ones: Sequence[float], others: Sequence[float]) -> Ratio:
    """Compare medians, which one disturbed pair does not move; the interval includes that pair."""
    return _ratio(median(ones) / median(others), ones, others)


def _ratio(value: float, ones: Sequence[float], others: Sequence[float]) -> Ratio:
    logs = [log(one / other) for one, other in zip(ones, others, strict=True)]
    half = t_quantile(0.975, len(logs) - 1) * stdev(logs) / sqrt(len(logs)) if len(logs) > 1 else nan
    return Ratio(value=value, low=exp(mean(logs) - half), high=exp(mean(logs) + half))
