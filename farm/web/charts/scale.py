"""Scales of charts: from values to places, with ticks at round values."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Steps of ticks within a decade, from coarse to fine; the first that yields enough ticks is used.
_LOG_STEPS = ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
_LINEAR_STEPS = (1.0, 2.0, 5.0)
_ENOUGH_TICKS = 4
#: A log scale that spans less than this ratio gets linear ticks: 0.98, 1.00, 1.02.
_NARROW = 1.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Places of values between two bounds on an axis of `length` units."""

    low: float
    high: float
    length: float
    is_log: bool

    def place(self, value: float) -> float:
        """Return the place of a value, at most the end of the axis, to a tenth of a unit."""
        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        share = 0.5 if high == low else (at - low) / (high - low)
        return round(self.length * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> Sequence[float]:
        """Return round values within the bounds, in their order."""
        if self.is_log and self.high / self.low >= _NARROW:
            return _log_ticks(self.low, self.high)
        return _linear_ticks(self.low, self.high)


def log_scale(values: Iterable[float], *, length: float, around: float = 1.0, least: float = 1.05) -> Scale:
    """Return a log scale that holds all values and `around`, with a margin on both sides.

    Args:
        values: positive ones.
        length: of the axis.
        around: a value that is always shown.
        least: the ratio that the scale reaches at least to each side of `around`.
    """
    held = [value for value in values if value > 0]
    low = min([around / least, *held])
    high = max([around * least, *held])
    pad = (high / low) ** 0.04
    return Scale(low=low / pad, high=high * pad, length=length, is_log=True)


def linear_scale(
    values: Iterable[float], *, length: float, from_zero: bool = False, least: float = 0.0
) -> Scale:
    """Return a linear scale that holds all values, with a margin unless it begins at zero.

    Args:
        values: any; without one, the scale is from 0 to 1.
        length: of the axis.
        from_zero: whether it begins at zero, which no value is below.
        least: the share of the largest value that the scale spans at least, so that noise is drawn flat.
    """
    held = [*values] or [0.0, 1.0]
    low, high = (0.0 if from_zero else min(held)), max(held)
    missing = least * max(abs(low), abs(high)) - (high - low)
    pad = max(0.04 * (high - low), missing / 2) or 0.5 * abs(high) or 0.5
    return Scale(low=low if from_zero else low - pad, high=high + pad, length=length, is_log=False)


def _log_ticks(low: float, high: float) -> Sequence[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in _LOG_STEPS:
        ticks = [
            value
            for decade in decades
            for step in steps
            for value in [round(step * 10.0**decade, 12)]
            if low <= value <= high
        ]
        if len(ticks) >= _ENOUGH_TICKS:
            break
    return ticks


def _linear_ticks(low: float, high: float) -> Sequence[float]:
    span = high - low
    decade = 10.0 ** math.floor(math.log10(span / _ENOUGH_TICKS))
    step = next(s * decade for s in (*_LINEAR_STEPS, 10.0) if span / (s * decade) <= 2 * _ENOUGH_TICKS)
    first = math.ceil(low / step)
    return [round(number * step, 12) for number in range(first, math.floor(high / step) + 1)]
