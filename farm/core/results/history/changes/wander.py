"""How the levels of devices wander without a change, and steps in such levels."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from farm.core.results.history.changes.noise import MAD_TO_SIGMA, Bools, Floats, Ints, row_medians

#: A correlation is estimated over so many sessions, and over so many days at least.
_SESSIONS_APART = (1, 2, 4, 8, 16)
_DAYS_APART = (0, 1, 2, 3, 5, 9, 17, 33)
_LEAST_PAIRS = 7
#: Another process is taken if its squared misfit is less than this share.
_BETTER = 0.6
_CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)
_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
#: No level is believed to be free of noise of its sessions: a share of the variance.
_LEAST_NOISE = 0.02
#: Variance of a session that does not exist, in that of the process.
_ABSENT = 1e6
#: The usual spread of log variances over devices, and how many devices that counts as.
_USUAL_EXCESS = 0.18
_USUAL_DEVICES = 4.0
_DEGREES = (3.0, 60.0)
#: Before steps are known, the process tells their spread as well as so many.
_UNKNOWN_DEGREES = 8.0
_LEAST_SPREAD = 0.002
#: The median absolute deviation of normal values knows as much as so many of them.
_EFFICIENCY = 0.37
#: Scores are scaled by their outliers, moderated by so many without.
_CLIP = 3.0
_PRIOR_SCORES = 20.0


class Wander(NamedTuple):
    """How levels wander without a change: an Ornstein-Uhlenbeck process, and noise of each session."""

    #: Correlation of the process after a day.
    correlation: float
    #: Share of the process in the variance.
    share: float
    #: Standard deviation of both, in log units.
    sigma: float

    @property
    def shape(self) -> tuple[float, float]:
        """Return what weights of sessions depend on."""
        return self.correlation, self.share


UNKNOWN_WANDER = Wander(0.5, 0.5, 0.03)


def estimated_wander(levels: Floats, days: Floats, is_known: Bools, previous: Wander) -> Wander:
    """Estimate how levels wander, by a robust variogram over days.

    Args:
        levels: a row per device, a column per session.
        days: of the sessions.
        is_known: whether the device had the session.
        previous: kept, unless another fits much better.
    """
    known = np.where(is_known, levels, np.nan)
    differences, apart = [], []
    for distance in _SESSIONS_APART:
        differences.append(np.abs(known[:, distance:] - known[:, :-distance]))
        apart.append(days[:, distance:] - days[:, :-distance])
    all_differences, all_apart = np.concatenate(differences, axis=1), np.concatenate(apart, axis=1)
    variogram, distances = [], []
    for least, below in zip(_DAYS_APART, (*_DAYS_APART[1:], np.inf), strict=True):
        is_in = (all_apart >= least) & (all_apart < below) & ~np.isnan(all_differences)
        middle, counts = row_medians(np.where(is_in, all_differences, np.nan))
        able = counts >= _LEAST_PAIRS
        if able.any():
            variogram.append(float(np.median(middle[able])) ** 2)
            distances.append(float(all_apart[able][is_in[able]].mean()))
    if len(variogram) < 3 or max(variogram) <= 0:
        return previous
    observed = np.log(np.array(variogram) + 1e-12)

    def scaled(correlation: float, share: float) -> tuple[float, Wander]:
        shape = 1.0 - correlation ** np.array(distances)
        ratio = observed - np.log(2.0 * (share * shape + 1.0 - share + _LEAST_NOISE))
        sigma = MAD_TO_SIGMA * float(np.exp(ratio.mean() / 2))
        return float(((ratio - ratio.mean()) ** 2).sum()), Wander(correlation, share, sigma)

    misfit, best = min(scaled(correlation, share) for correlation in _CORRELATIONS for share in _SHARES)
    misfit_before, rescaled = scaled(*previous.shape)
    return best if misfit < _BETTER * misfit_before else rescaled


def steps(
    levels: Floats, days: Floats, is_known: Bools, afters: Sequence[int], process: Wander
) -> tuple[Floats, Floats]:
    """Return the best linear estimates of steps before the last sessions of each row, and standard errors.

    Generalized least squares with an unknown level and the covariance of the process over days; errors are in
    standard deviations of the process and its noise.

    Args:
        levels: a row per device, newest session last.
        days: of the sessions.
        is_known: whether the session exists.
        afters: numbers of sessions after a step: a row of the results for each.
        process: how the levels wander.
    """
    count = levels.shape[1]
    apart = np.abs(days[:, :, None] - days[:, None, :])
    covariance = process.share * process.correlation**apart
    diagonal = np.arange(count)
    noise = 1.0 - process.share + _LEAST_NOISE
    covariance[:, diagonal, diagonal] += np.where(is_known, noise, _ABSENT)
    design = np.column_stack([np.ones(count), *(diagonal >= count - after for after in afters)])
    solved = np.linalg.solve(covariance, np.broadcast_to(design, (len(levels), *design.shape)))
    products = np.einsum("wj,nwk->jkn", design, solved)
    projected = np.einsum("nwk,nw->kn", solved, np.where(is_known, levels, 0.0))
    step = np.arange(1, design.shape[1])
    level, both, own = products[0, 0], products[0, 1:], products[step, step]
    determinant = level * own - both**2
    size: Floats = (level * projected[1:] - both * projected[0]) / determinant
    return size, np.sqrt(level / determinant)


class Spread(NamedTuple):
    """The standard deviation of steps without a change, and the degrees of freedom it counts as."""

    sigma: Floats
    degrees: Floats


def spread_of(process: Wander) -> Spread:
    """Return the spread that follows from a process, before any steps are known."""
    return Spread(np.array(process.sigma), np.array(_UNKNOWN_DEGREES))


def pooled_spread(middles: Floats, counts: Ints) -> Spread:
    """Return what devices say of the spread of one of them, from their median absolute steps.

    The degrees of freedom are few where devices differ. They follow from how much the variances of devices
    differ beyond chance, as in Smyth (2004): trigamma(d / 2), of which 2 / d + 2 / d² is an approximation.
    """
    sigma = np.maximum(middles * MAD_TO_SIGMA, _LEAST_SPREAD)
    own = np.maximum(_EFFICIENCY * counts, 1.0)
    observed = float(np.var(np.log(sigma**2), ddof=1)) if len(sigma) > 1 else 0.0
    excess = max(observed - float(np.mean(2.0 / own + 2.0 / own**2)), 0.0)
    excess = (_USUAL_DEVICES * _USUAL_EXCESS + len(sigma) * excess) / (_USUAL_DEVICES + len(sigma))
    degrees = (1.0 + np.sqrt(1.0 + 2.0 * excess)) / excess
    least, most = _DEGREES
    return Spread(np.array(np.median(sigma)), np.array(np.clip(degrees, least, min(most, own.sum()))))


def moderated_spread(past: Floats, usual: Spread, shared: Floats) -> Spread:
    """Return the spread of earlier steps, moderated by what others say.

    Args:
        past: steps along the last axis; NaN where there is none.
        usual: what others say.
        shared: sessions that each step shares with the next ones.
    """
    middle, counts = row_medians(np.abs(past))
    own = np.where(counts > 0, middle * MAD_TO_SIGMA, 0.0)
    weight = _EFFICIENCY * counts / shared
    variance = (usual.degrees * usual.sigma**2 + weight * own**2) / (usual.degrees + weight)
    sigma = np.maximum(np.sqrt(variance), _LEAST_SPREAD)
    scores = np.nan_to_num(np.clip(past / sigma[..., None], -_CLIP, _CLIP))
    squares = (scores**2).sum(axis=-1) / shared
    outliers = np.maximum((_PRIOR_SCORES + squares) / (_PRIOR_SCORES + counts / shared), 1.0)
    return Spread(sigma * np.sqrt(outliers), usual.degrees + weight)
