"""Differences at a change: contrasts of series, combined by baseline and pooled over a scope."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from farm.core.results.history.changes.noise import (
    agreed,
    normal_scores,
    row_medians,
    variance_of_mean,
    winsorized_means,
)
from farm.core.results.history.changes.ratios import RatioHistory

#: Ratios of one session share their baseline, and so half of their variance.
SHARED_BASELINE = 0.5
#: A step that is told of very few sessions is at least half as slow again, or as much quicker,
_LEAST_SURE = math.log(1.5)
#: and its score has tails as heavy as those of Student's t with so many degrees of freedom.
FEW_DEGREES = 6.0


@dataclass(frozen=True, slots=True)
class Difference:
    """The sessions since a start against those before it: of series with one baseline, or of a device."""

    #: Mean difference with outliers clipped, and its variance: for tests.
    shift: float
    variance: float
    #: Difference of robust means: the size of the change.
    size: float
    degrees: float
    #: Sessions after and before, at most.
    after: int
    before: int


def contrasts(
    history: RatioHistory, tick_by_row: Mapping[int, int], *, is_whole: bool = False
) -> dict[int, Difference]:
    """Compare the sessions of rows from a tick on with their reference before; rows without either show none.

    Args:
        history: of the rows.
        tick_by_row: first session of the new level, by row.
        is_whole: count outliers as they are.
    """
    if not tick_by_row:
        return {}
    rows, ticks = np.array(list(tick_by_row)), np.array(list(tick_by_row.values()))
    reference = history.reference(rows)
    is_after = history.ticks[rows] >= ticks[:, None]
    after = np.where(is_after, reference, np.nan)
    before = np.where(is_after, np.nan, reference)
    scales = history.scales
    sigma = scales.sigma[rows]
    center, n_before = row_medians(before)
    n_after = np.sum(~np.isnan(after), axis=1)
    errors = history.believed_errors(rows)
    unit = np.maximum(sigma[:, None], errors)
    z = (reference - center[:, None]) / unit
    if not is_whole:
        limit = agreed(np.where(is_after, z, np.nan), n_after)[:, None]
        z = np.clip(z, -limit, limit)
    z = np.where(np.isnan(z), 0.0, z)
    sums_after = np.where(is_after, z, 0.0).sum(axis=1)
    sums_before = np.where(is_after, 0.0, z).sum(axis=1)
    shift = sums_after / np.maximum(n_after, 1) - sums_before / np.maximum(n_before, 1)
    correlation = scales.correlation[rows]
    variance = scales.excess[rows] ** 2 * (
        variance_of_mean(n_after, correlation) + variance_of_mean(n_before, correlation)
    )
    variance = variance * sigma**2
    if is_whole:
        # The noise between a few sessions is not known, that within each is.
        squares = np.where(np.isnan(reference), 0.0, errors**2)
        within = (
            np.where(is_after, squares, 0.0).sum(axis=1) / np.maximum(n_after, 1) ** 2
            + np.where(is_after, 0.0, squares).sum(axis=1) / np.maximum(n_before, 1) ** 2
        )
        variance = np.maximum(variance, within)
    size = winsorized_means(after, sigma) - winsorized_means(before, sigma)
    shift *= sigma
    degrees = scales.degrees[rows]
    return {
        int(row): Difference(
            shift=float(shift[place]),
            variance=float(variance[place]),
            size=float(size[place]),
            degrees=float(degrees[place]),
            after=int(n_after[place]),
            before=int(n_before[place]),
        )
        for place, row in enumerate(rows)
        if n_after[place] > 0 and n_before[place] > 0
    }


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
