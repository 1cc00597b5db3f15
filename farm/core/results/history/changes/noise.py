"""How much sessions differ without any change: robust scales, moderated over series, and their correlation.

The standard error of a point knows the rounds of its session only. Sessions differ by more (heat, placement
in memory, what else ran), so the scale of a series is estimated from its own past, and moderated by that of
all series as in Smyth, "Linear models and empirical Bayes methods", Statistical Applications in Genetics and
Molecular Biology 3(1), 2004.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Of a normal distribution, standard deviation over median absolute deviation.
MAD_TO_SIGMA = 1.4826
#: A residual counts as at most so many standard deviations: one broken session is no change.
CLIP = 3.0
#: The prior over series counts as so many sessions.
PRIOR_DEGREES = 3.0
#: Lag-1 correlation of all series counts as so many sessions of one.
_PRIOR_SESSIONS = 60.0
#: No series is believed to be quieter, in log units.
LEAST_SIGMA = 0.001
MOST_CORRELATION = 0.9
#: Values before they say how far they differ.
_LEAST_VALUES = 3
#: Sessions since a break that are believed to be more than outliers where they agree.
_AGREEING = 2
#: They count as at most so many standard deviations each.
_MOST_AGREED = 6.0


def row_medians(values: Floats) -> tuple[Floats, Ints]:
    """Return the median of each row without its NaN, and how many values it is of; NaN for none."""
    if not values.shape[-1]:
        return np.full(values.shape[:-1], np.nan), np.zeros(values.shape[:-1], dtype=np.int64)
    # NaN are sorted behind all values: the first of none is NaN.
    ordered = np.sort(values, axis=-1).reshape(-1, values.shape[-1])
    counts = (~np.isnan(ordered)).sum(axis=1)
    rows = np.arange(len(ordered))
    low, high = ordered[rows, np.maximum(counts - 1, 0) // 2], ordered[rows, counts // 2]
    return ((low + high) / 2).reshape(values.shape[:-1]), counts.reshape(values.shape[:-1])


def deviations(values: Floats) -> Floats:
    """Return how far the values of each row are from their median, as those of a sample; NaN of too few."""
    middle, counts = row_medians(values)
    apart = (values - middle[:, None]) * np.sqrt(counts / np.maximum(counts - 1, 1))[:, None]
    return np.where(counts[:, None] < _LEAST_VALUES, np.nan, apart)


def winsorized_means(values: Floats, sigma: Floats) -> Floats:
    """Return the mean of each row, with values beyond 1.5 sigma of its median moved there.

    It is one step of Huber's estimator: 96 % as efficient as the mean with normal noise.
    """
    center, counts = row_medians(values)
    reach = 1.5 * sigma
    clipped = np.clip(values - center[:, None], -reach[:, None], reach[:, None])
    total = np.where(np.isnan(clipped), 0.0, clipped).sum(axis=1)
    means: Floats = center + total / np.maximum(counts, 1)
    return means


class Scales:
    """What is known of the noise of some series."""

    def __init__(self, sigma: Floats, degrees: Floats, excess: Floats, correlation: Floats) -> None:
        #: Robust standard deviation of a session.
        self.sigma = sigma
        #: Degrees of freedom of its estimate.
        self.degrees = degrees
        #: Standard deviation of clipped residuals over that of normal ones: above 1 with many outliers.
        self.excess = excess
        #: Of successive sessions.
        self.correlation = correlation


def scales(residuals: Floats, prior_sigma: Floats, prior_correlation: float) -> Scales:
    """Estimate the noise of each row of residuals, newest last, NaN where there is none."""
    median, counts = row_medians(np.abs(residuals))
    own = np.where(counts > 0, median * MAD_TO_SIGMA, 0.0)
    # The median absolute deviation uses about half of what the residuals know.
    weight = counts / 2
    variance = (PRIOR_DEGREES * prior_sigma**2 + weight * own**2) / (PRIOR_DEGREES + weight)
    sigma = np.maximum(np.sqrt(variance), LEAST_SIGMA)
    clipped = np.clip(residuals / sigma[:, None], -CLIP, CLIP)
    clipped = np.where(np.isnan(clipped), 0.0, clipped)
    squares = (clipped**2).sum(axis=1)
    excess = np.sqrt(np.maximum((20.0 + squares) / (20.0 + counts), 1.0))
    products = (clipped[:, 1:] * clipped[:, :-1]).sum(axis=1)
    shrunk = (products / np.maximum(squares, 1.0) * counts + prior_correlation * _PRIOR_SESSIONS) / (
        counts + _PRIOR_SESSIONS
    )
    return Scales(sigma, PRIOR_DEGREES + weight, excess, np.clip(shrunk, 0.0, MOST_CORRELATION))


def variance_of_mean(count: NDArray[np.generic], correlation: Floats) -> Floats:
    """Return the variance of the mean of so many sessions of variance 1, as an AR(1) process has it."""
    n = np.maximum(np.asarray(count, dtype=np.float64), 1.0)
    rest = 1.0 - correlation
    variance: Floats = (
        (1.0 + correlation) / rest - 2.0 * correlation * (1.0 - correlation**n) / (n * rest**2)
    ) / n
    return variance


def normal_scores(t: Floats, degrees: Floats) -> Floats:
    """Return the standard normal value that is as improbable as a value of Student's t.

    Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", Annals of
    Mathematical Statistics 30, 1959.
    """
    return (
        np.sign(t)
        * np.sqrt(degrees * np.log1p(t**2 / degrees))
        * (8.0 * degrees + 1.0)
        / (8.0 * degrees + 3.0)
    )


def lagged(z: Floats) -> Floats:
    """Return the lag-1 correlation of each row of scores, NaN where there is none."""
    clipped = np.clip(z, -CLIP, CLIP)
    known = np.where(np.isnan(clipped), 0.0, clipped)
    products: Floats = (known[:, 1:] * known[:, :-1]).sum(axis=1)
    squares: Floats = np.maximum((known**2).sum(axis=1), 1.0)
    return products / squares


def agreed(after: Floats, counts: Ints) -> Floats:
    """Return the score that the sessions of each row are clipped at: where all agree on more, that much.

    One session may be broken, and several hardly in the same direction by as much.
    """
    direction = np.sign(np.nan_to_num(row_medians(after)[0]))
    least = np.where(np.isnan(after), np.inf, direction[:, None] * after).min(axis=1)
    return np.where(counts >= _AGREEING, np.clip(least, CLIP, _MOST_AGREED), CLIP)
