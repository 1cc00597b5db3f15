"""Differences at a change: contrasts of series, combined by baseline and pooled over a scope."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farm.core.results.history.changes.noise import normal_scores

#: Ratios of one session share their baseline, and so half of their variance.
SHARED_BASELINE = 0.5
#: A step that is told of very few sessions is at least half as slow again, or as much quicker,
_LEAST_SURE = math.log(1.5)
#: and its score has tails as heavy as those of Student's t with so many degrees of freedom.
FEW_DEGREES = 6.0


@dataclass(frozen=True, slots=True)
class Difference:
    """The contrast of one group of series with one baseline, or of one device."""

    shift: float
    variance: float
    size: float
    degrees: float
    #: Sessions after and before, at most.
    after: int
    before: int


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
    z = float(normal_scores(np.array(shift * math.sqrt(total)), np.array(degrees)))
    return Pooled(z, size, shift, total)


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
        ((1 - SHARED_BASELINE) * own + SHARED_BASELINE * every) / total**2,
        sum(weight * part.size for weight, part in zip(weights, parts, strict=True)) / total,
        sum(part.degrees for part in parts) / len(parts),
        max(part.after for part in parts),
        max(part.before for part in parts),
    )


def is_sure(sizes: Sequence[float]) -> bool:
    """Return whether all moved in one direction, and so far that a few sessions suffice."""
    return min(sizes) >= _LEAST_SURE or max(sizes) <= -_LEAST_SURE
