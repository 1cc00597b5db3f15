"""Differences at a change: contrasts of series, combined by baseline and pooled over a scope."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Ratios of one session share their baseline, and so half of their variance.
_SHARED_BASELINE = 0.5


@dataclass(frozen=True, slots=True)
class Difference:
    """The contrast of one group of series with one baseline, or of one device."""

    shift: float
    variance: float
    size: float
    degrees: float
    after: int


@dataclass(frozen=True, slots=True)
class Pooled:
    """The mean of evidence that is independent of each other."""

    z: float
    size: float
    shift: float
    precision: float


def pooled(parts: Sequence[Difference]) -> Pooled:
    """Return the mean of some evidence, weighted by its variances, and its standard normal score."""
    weights = [1.0 / (part.variance + 1e-6) for part in parts]
    total = sum(weights)
    shift = sum(weight * part.shift for weight, part in zip(weights, parts, strict=True)) / total
    size = sum(weight * part.size for weight, part in zip(weights, parts, strict=True)) / total
    degrees = sum(part.degrees for part in parts)
    t = shift * math.sqrt(total)
    z = math.copysign(math.sqrt(degrees * math.log1p(t * t / degrees)), t)
    # Wallace's approximation, as in `noise.normal_scores`.
    return Pooled(z * (8 * degrees + 1) / (8 * degrees + 3), size, shift, total)


def combined(parts: Sequence[Difference]) -> Difference:
    """Return the weighted mean of the evidence of series that share a baseline, and its variance."""
    if len(parts) == 1:
        return parts[0]
    weights = [1.0 / (part.variance + 1e-6) for part in parts]
    total = sum(weights)
    own = sum(weight**2 * part.variance for weight, part in zip(weights, parts, strict=True))
    every = sum(weight * math.sqrt(part.variance) for weight, part in zip(weights, parts, strict=True)) ** 2
    return Difference(
        sum(weight * part.shift for weight, part in zip(weights, parts, strict=True)) / total,
        ((1 - _SHARED_BASELINE) * own + _SHARED_BASELINE * every) / total**2,
        sum(weight * part.size for weight, part in zip(weights, parts, strict=True)) / total,
        sum(part.degrees for part in parts) / len(parts),
        max(part.after for part in parts),
    )
