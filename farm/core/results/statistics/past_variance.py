"""What the past of a pair says of the variance of its rounds: empirical Bayes, as limma does.

Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", Statistical Applications in Genetics and Molecular Biology 3(1), 2004. There the variances of
many genes say what that of one probably is; here those of one pair of series on one phone, in earlier
matrices. Other rows never do: some are steadier than others, and where they were pooled, 16 % of equal rows
alarmed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Fewer earlier matrices say too little of how the variance differs from one to the next.
MIN_MATRICES = 3
#: The newest ones count.
MAX_MATRICES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PastVariance:
    """The variance of the log ratios in an earlier matrix, with its degrees of freedom."""

    variance: float
    degrees: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VariancePrior:
    """The variance to expect, which counts as much as one of `degrees` degrees of freedom."""

    variance: float
    degrees: float
    matrices: int


def variance_prior(past: Sequence[PastVariance]) -> VariancePrior | None:
    """Return what to expect; None where the past is too short.

    Moments of the logarithms of the variances: Smyth 2004, section 6.2, with two differences, since limma has
    thousands of genes, and this past a few sessions. What is expected is the geometric mean of the past
    variances, which exceeds Smyth's harmonic one the more sessions differ. And it is itself uncertain by its
    standard error, which adds to the spread of today's variance around it. Without the two, 5.5 to 6.5 % of
    equal cells alarmed where days differ (`benchmarks/calibration.py`).
    """
    known = [item for item in past if item.variance > 0 and item.degrees > 0][:MAX_MATRICES]
    if len(known) < MIN_MATRICES:
        return None
    from scipy.special import digamma, polygamma

    logs = [
        # The logarithm of a variance of few degrees is low on average.
        math.log(item.variance) - float(digamma(item.degrees / 2)) + math.log(item.degrees / 2)
        for item in known
    ]
    count = len(logs)
    mean = math.fsum(logs) / count
    sampling = math.fsum(float(polygamma(1, item.degrees / 2)) for item in known) / count
    between = math.fsum((log - mean) ** 2 for log in logs) / (count - 1)
    of_days = max(between - sampling, 0.0)
    degrees = 2 * _inverse_trigamma(of_days + (of_days + sampling) / count)
    return VariancePrior(variance=math.exp(mean), degrees=degrees, matrices=count)


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = value by Newton's method on its reciprocal: Smyth 2004, appendix."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        change = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += change
        if -change / x < 1e-8:
            break
    return x
