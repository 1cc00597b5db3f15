"""How the levels of devices wander without a change, and steps in such levels."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from farm.core.results.history.changes.noise import (
    MAD_TO_SIGMA,
    Bools,
    Floats,
    Ints,
    normal_scores,
    row_medians,
)

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
#: A step of one device is judged by all of these processes: correlation after a day, share of the variance.
_SHAPES = np.array(
    [
        (0.0, 0.0),
        *product((0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995), (0.25, 0.5, 0.75, 0.9, 0.98)),
    ]
)
#: What a farm says of the process of one device counts as so many sessions at most, and of its size as few.
_MOST_OF_FARM = 100.0
_DEGREES_OF_FARM = 4.0
#: Sessions of a device before it says something.
_LEAST_SESSIONS = 15
#: Scores are scaled by their outliers, moderated by so many without.
_CLIP = 3.0
_PRIOR_SCORES = 20.0
#: A device was away if it has no session for more days than this, and than so many times as usual.
_AWAY_DAYS = 10
_AWAY_TIMES = 8


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


class Processes(NamedTuple):
    """What the devices of a farm say of how one of them may wander, for each of some processes."""

    #: Log likelihoods, of as many sessions as that is believed to be worth.
    likelihood: Floats
    #: Standard deviations of a session.
    sigma: Floats


#: Before anything is known.
UNKNOWN_PROCESSES = Processes(np.zeros(len(_SHAPES)), np.full(len(_SHAPES), UNKNOWN_WANDER.sigma))


def _products(signals: Floats, days: Floats, is_known: Bools) -> tuple[Floats, Floats]:
    """Return the products of signals by the inverse covariance of each process, and its log determinant.

    A Kalman filter over days makes values that are independent; their products are summed.

    Args:
        signals: of some devices: by device, signal and session, oldest first.
        days: of the sessions of each device.
        is_known: whether the device had the session.

    Returns:
        Products by device, process, signal and signal; determinants by device and process.
    """
    correlation, share = _SHAPES.T
    devices, count, sessions = signals.shape
    variance = np.broadcast_to(share, (devices, len(share)))
    state = np.zeros((devices, len(share), count))
    products = np.zeros((*state.shape, count))
    determinant = np.zeros((devices, len(share)))
    for at in range(sessions):
        if at:
            kept = correlation ** (days[:, at] - days[:, at - 1])[:, None]
            state = state * kept[..., None]
            variance = share + kept**2 * (variance - share)
        total = variance + 1.0 - share
        known = is_known[:, at, None]
        surprise = np.where(known[..., None], signals[:, None, :, at] - state, 0.0)
        products += surprise[..., None, :] * (surprise / total[..., None])[..., None]
        determinant += np.where(known, np.log(total), 0.0)
        state = state + (variance / total)[..., None] * surprise
        variance = np.where(known, variance * (1.0 - share) / total, variance)
    return products, determinant


def processes(levels: Floats, days: Floats, is_known: Bools) -> Processes:
    """Return what devices say of how levels wander, by the likelihood of each process.

    Args:
        levels: a row per device, a column per session.
        days: of the sessions.
        is_known: whether the device had the session.
    """
    counts = is_known.sum(axis=1)
    able = counts >= _LEAST_SESSIONS
    if not able.any():
        return UNKNOWN_PROCESSES
    counts, is_known = counts[able], is_known[able]
    known = np.where(is_known, levels[able], 0.0)
    products, determinant = _products(np.stack([known, np.ones(known.shape)], axis=1), days[able], is_known)
    squares = products[..., 0, 0] - products[..., 0, 1] ** 2 / products[..., 1, 1]
    squares = np.maximum(squares, _LEAST_SPREAD**2)
    rest = counts[:, None] - 1.0
    likelihood = -0.5 * (determinant + np.log(products[..., 1, 1]) + rest * np.log(squares))
    total = likelihood.sum(axis=0) * min(1.0, _MOST_OF_FARM / float(counts.sum()))
    return Processes(total - total.max(), np.median(np.sqrt(squares / rest), axis=0))


class Step(NamedTuple):
    """The size of a step, its variance, and the degrees of freedom of this."""

    size: float
    variance: float
    degrees: float

    @property
    def z(self) -> float:
        """Return the standard normal score."""
        return float(normal_scores(np.array(self.size / np.sqrt(self.variance)), np.array(self.degrees)))


def step_of_any_process(levels: Floats, days: Floats, after: int, usual: Processes) -> Step:
    """Return the step before the latest sessions of a device, whatever its own process may be.

    Generalized least squares under each process, weighted by how well it explains the sessions with a step
    between them: a step that is there does not look like a restless device.

    Args:
        levels: of the sessions, oldest first.
        days: of them.
        after: sessions since the step.
        usual: what other devices say.
    """
    count = len(levels)
    signals = np.stack([levels, np.ones(count), np.where(np.arange(count) < count - after, 0.0, 1.0)])
    products, determinant = _products(signals[None], days[None], np.ones((1, count), dtype=bool))
    (square, mean, moved), (_, level, late), (_, _, own) = products[0].transpose(1, 2, 0)
    own = own - late**2 / level
    both = moved - mean * late / level
    squares = square - mean**2 / level - both**2 / own
    degrees = count - 2.0 + _DEGREES_OF_FARM
    squares = np.maximum(squares, 0.0) + _DEGREES_OF_FARM * usual.sigma**2
    likelihood = usual.likelihood - 0.5 * (determinant[0] + np.log(level * own) + degrees * np.log(squares))
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    sizes, variances = both / own, squares / degrees / own
    size = float(weights @ sizes)
    return Step(size, float(weights @ (variances + (sizes - size) ** 2)), degrees)


def spread_of_absence(levels: Floats, days: Floats, is_known: Bools, afters: Sequence[int]) -> Floats:
    """Return how far levels may wander where a device was away before or since a step; 0 elsewhere.

    Args:
        levels: a row per device, a column per session.
        days: of the sessions.
        is_known: whether the device had the session.
        afters: numbers of sessions after a step: a row of the result for each.
    """
    apart = np.where(is_known[:, :-1], np.diff(days, axis=1), np.nan)
    usual = np.nan_to_num(row_medians(apart)[0])
    most = np.maximum(_AWAY_DAYS, _AWAY_TIMES * usual)
    longest = np.array([np.nan_to_num(apart[:, -after - 2 :]).max(axis=1) for after in afters])
    known = np.where(is_known, levels, np.nan)
    middle = row_medians(known)[0]
    wander = row_medians(np.abs(known - middle[:, None]))[0] * MAD_TO_SIGMA * np.sqrt(2.0)
    return np.where(longest > most, np.nan_to_num(wander), 0.0)
