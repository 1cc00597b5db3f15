"""How the levels of devices wander without a change, and steps in such levels."""

from collections.abc import Iterator, Sequence
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

#: Before anything is known, the standard deviation of a session.
UNKNOWN_SIGMA = 0.03
_LEAST_SPREAD = 0.002
#: Variance of a session that does not exist, in that of the process.
_ABSENT = 1e9
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
#: Of a form that is a level, too: less is none.
_LEAST_INFORMATION = 1e-9
#: A step longer ago was not seen when it came: more probably, the level wandered.
_MOST_SUDDEN = 12
#: Steps so many sessions ago are compared with each other, and with drifts that began so many days ago. Each
#: sudden one has a number of its own: beside it, a step that came one session later explains far less.
_STEP_SESSIONS = (*range(1, _MOST_SUDDEN + 1), *range(14, 21, 2), *range(23, 33, 3), 36, 40, 45, 50)
_DRIFT_DAYS = (10.0, 14.0, 20.0, 28.0, 40.0, 60.0)
#: Sessions before either, at least.
_LEAST_BEFORE = 15
#: Sessions of a device before it says something.
_LEAST_SESSIONS = 15
#: Devices are filtered together, so many at once: each takes some 0.3 MB in between.
_AT_ONCE = 256
#: A device was away if it has no session for more days than this, and than so many times as usual.
_AWAY_DAYS = 10
_AWAY_TIMES = 8


class Processes(NamedTuple):
    """What the devices of a farm say of how one of them may wander, for each of some processes."""

    #: Log likelihoods, of as many sessions as that is believed to be worth.
    likelihood: Floats
    #: Standard deviations of a session.
    sigma: Floats


#: Before anything is known.
UNKNOWN_PROCESSES = Processes(np.zeros(len(_SHAPES)), np.full(len(_SHAPES), UNKNOWN_SIGMA))


def _products(signals: Floats, days: Floats, is_known: Bools) -> tuple[Floats, Floats, Floats]:
    """Return products of signals by the inverse covariance of each process, and its log determinant.

    A Kalman filter over days makes values that are independent; their products are summed. What a signal is
    before its first value that is not 0 adds nothing.

    Args:
        signals: of some devices: by device, signal and session, oldest first.
        days: of the sessions of each device.
        is_known: whether the device had the session.

    Returns:
        Products of the first two signals with all, by device, process, signal and signal; of each with
        itself; determinants by device and process.
    """
    correlation, share = _SHAPES.T
    # What no device has of the oldest sessions says nothing.
    begin = int(is_known.any(axis=0).argmax())
    signals, days, is_known = signals[..., begin:], days[:, begin:], is_known[:, begin:]
    devices, count, sessions = signals.shape
    first = (signals != 0.0).any(axis=0).argmax(axis=1)
    first[:2] = 0
    order = np.argsort(first, kind="stable")
    signals, begun = signals[:, order], np.searchsorted(first[order], np.arange(sessions), side="right")
    kept = correlation ** np.diff(days, axis=1, prepend=days[:, :1]).T[..., None]
    noise = np.where(is_known.T[..., None], 1.0 - share, _ABSENT)
    added = share * (1.0 - kept**2)
    variance = np.broadcast_to(share, (devices, len(share)))
    totals = np.empty(noise.shape)
    state = np.zeros((devices, len(share), count))
    products, squares = np.zeros((devices, len(share), 2, count)), np.zeros(state.shape)
    for at, active in enumerate(begun):
        now = state[..., :active]
        now *= kept[at, ..., None]
        variance = added[at] + kept[at] ** 2 * variance
        total = totals[at] = variance + noise[at]
        surprise = signals[:, None, :active, at] - now
        scaled = surprise / total[..., None]
        products[..., :active] += surprise[..., :2, None] * scaled[..., None, :]
        squares[..., :active] += surprise * scaled
        now += variance[..., None] * scaled
        variance = variance * noise[at] / total
    determinant = np.where(is_known.T[..., None], np.log(totals), 0.0).sum(axis=0)
    back = np.argsort(order)
    return products[..., back], squares[..., back], determinant


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
    parts = [_likelihoods(levels[at], days[at], is_known[at]) for at in _chunks(np.flatnonzero(able))]
    likelihood, sigma = (np.concatenate(part) for part in zip(*parts, strict=True))
    total = likelihood.sum(axis=0) * min(1.0, _MOST_OF_FARM / float(counts[able].sum()))
    return Processes(total - total.max(), np.median(sigma, axis=0))


def _chunks(devices: Ints) -> Iterator[Ints]:
    """Split devices into as many as are filtered at once."""
    for first in range(0, len(devices), _AT_ONCE):
        yield devices[first : first + _AT_ONCE]


def _likelihoods(levels: Floats, days: Floats, is_known: Bools) -> tuple[Floats, Floats]:
    """Return the log likelihood of each process, and its standard deviation of a session, by device."""
    known = np.where(is_known, levels, 0.0)
    signals = np.stack([known, np.ones(known.shape)], axis=1)
    products, _, determinant = _products(signals, days, is_known)
    squares = products[..., 0, 0] - products[..., 0, 1] ** 2 / products[..., 1, 1]
    squares = np.maximum(squares, _LEAST_SPREAD**2)
    rest = is_known.sum(axis=1)[:, None] - 1.0
    likelihood = -0.5 * (determinant + np.log(products[..., 1, 1]) + rest * np.log(squares))
    return likelihood, np.sqrt(squares / rest)


class Estimates(NamedTuple):
    """Sizes of changes of some devices, by device and form, whatever their processes may be."""

    size: Floats
    variance: Floats
    #: Degrees of freedom of the variance, by device.
    degrees: Floats
    #: Log likelihood with the change, over all processes.
    likelihood: Floats

    @property
    def z(self) -> Floats:
        """Return the standard normal scores."""
        return normal_scores(self.size / np.sqrt(self.variance), self.degrees[:, None])


def estimates(levels: Floats, days: Floats, is_known: Bools, forms: Floats, usual: Processes) -> Estimates:
    """Return the sizes of changes in the levels of devices, whatever the process of each may be.

    Generalized least squares under each process, weighted by how well it explains the sessions with a change
    between them: a change that is there does not look like a restless device.

    Args:
        levels: a row per device, newest session last.
        days: of the sessions.
        is_known: whether the device had the session.
        forms: the share of a change that each session has, by device and form.
        usual: what other devices say.
    """
    known = np.where(is_known, levels, 0.0)
    signals = np.concatenate([known[:, None], np.ones((len(levels), 1, levels.shape[1])), forms], axis=1)
    products, squares, determinant = _products(signals, days, is_known)
    (square, mean), level = products[..., 0, :2].transpose(2, 0, 1), products[..., 1, 1]
    late = products[..., 1, 2:]
    own = np.maximum(squares[..., 2:] - late**2 / level[..., None], _LEAST_INFORMATION)
    both = products[..., 0, 2:] - (mean / level)[..., None] * late
    rest = (square - mean**2 / level)[..., None] - both**2 / own
    degrees = is_known.sum(axis=1) - 2.0 + _DEGREES_OF_FARM
    rest = np.maximum(rest, 0.0) + _DEGREES_OF_FARM * usual.sigma[:, None] ** 2
    each = usual.likelihood[:, None] - 0.5 * (
        determinant[..., None] + np.log(level[..., None] * own) + degrees[:, None, None] * np.log(rest)
    )
    most = each.max(axis=1, keepdims=True)
    weights = np.exp(each - most)
    total = weights.sum(axis=1, keepdims=True)
    weights /= total
    sizes, variances = both / own, rest / degrees[:, None, None] / own
    size = (weights * sizes).sum(axis=1)
    variance = (weights * (variances + (sizes - size[:, None]) ** 2)).sum(axis=1)
    return Estimates(size, variance, degrees, (most + np.log(total))[:, 0])


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

    Args:
        levels: of the sessions, oldest first.
        days: of them.
        after: sessions since the step.
        usual: what other devices say.
    """
    form = np.where(np.arange(len(levels)) < len(levels) - after, 0.0, 1.0)
    is_known = np.ones((1, len(levels)), dtype=bool)
    found = estimates(levels[None], days[None], is_known, form[None, None], usual)
    return Step(float(found.size[0, 0]), float(found.variance[0, 0]), float(found.degrees[0]))


class Shift(NamedTuple):
    """What explains the latest sessions of a device best: a step, or a drift that goes on."""

    z: float
    size: float
    #: Sessions since it began.
    length: int
    is_drift: bool

    @property
    def is_slow(self) -> bool:
        """Return whether it is a drift, or a step so long ago that it resembles one."""
        return self.is_drift or self.length > _MOST_SUDDEN


def shifts(levels: Floats, days: Floats, is_known: Bools, usual: Processes) -> list[Shift]:
    """Return the step or the drift of each device that explains its sessions best.

    Args:
        levels: a row per device, newest session last.
        days: of the sessions.
        is_known: whether the device had the session.
        usual: what other devices say.
    """
    return [
        shift
        for at in _chunks(np.arange(len(levels)))
        for shift in _shifts(levels[at], days[at], is_known[at], usual)
    ]


def _shifts(levels: Floats, days: Floats, is_known: Bools, usual: Processes) -> list[Shift]:
    age = np.arange(levels.shape[1])[::-1]
    since = (days[:, -1:] - days)[:, None]
    ramps = np.maximum(1.0 - since / np.array(_DRIFT_DAYS)[:, None], 0.0)
    at_once = np.where(age < np.array(_STEP_SESSIONS)[:, None], 1.0, 0.0)
    forms = np.concatenate([np.broadcast_to(at_once, (len(levels), *at_once.shape)), ramps], axis=1)
    found = estimates(levels, days, is_known, forms, usual)
    before = (is_known[:, None] & (forms == 0.0)).sum(axis=2)
    best = np.where(before >= _LEAST_BEFORE, found.likelihood, -np.inf).argmax(axis=1)
    lengths, z = (is_known[:, None] & (forms > 0.0)).sum(axis=2), found.z
    # Where a device was away, its level may be another one without a change.
    away = spread_of_absence(levels, days, is_known, _STEP_SESSIONS).T
    wide = np.sqrt(np.maximum(found.variance[:, : len(_STEP_SESSIONS)], away**2))
    at_steps = found.size[:, : len(_STEP_SESSIONS)] / wide
    z[:, : len(_STEP_SESSIONS)] = normal_scores(at_steps, found.degrees[:, None])
    return [
        Shift(
            float(z[at, form]) if before[at, form] >= _LEAST_BEFORE else 0.0,
            float(found.size[at, form]),
            int(lengths[at, form]),
            bool(form >= len(_STEP_SESSIONS)),
        )
        for at, form in enumerate(best)
    ]


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
