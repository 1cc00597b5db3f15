"""What all series of a device share: its absolute level, which heat and age move, and steps in it."""

from functools import cache
from typing import NamedTuple

import numpy as np

from farm.core.results.history.changes.noise import MAD_TO_SIGMA, Floats, Ints, normal_scores, row_medians

#: Sessions of a device that are kept.
SESSIONS = 100
#: Sessions after a step. Few: the level of a device wanders.
_AFTER = (3, 4, 5, 6, 8)
#: Sessions before a step: as many as there are, of these.
_BEFORE = (20, 10, 5)
#: Sessions before a step, at least.
_LEAST_BEFORE = _BEFORE[-1]
#: A session of a step moves at least by this share of the step.
_CONFIRMING_SHARE = 0.4
_LEAST_GAIN = 0.1
#: A device was away if it has no session for more days than this, and than so many times as usual.
_AWAY_DAYS = 4
_AWAY_TIMES = 5
_LEAST_SPREAD = 0.002
#: The spread of steps over all devices counts as so many degrees of freedom.
_PRIOR_DEGREES = 12.0
_UNKNOWN_SPREAD = 0.03
#: Days on which the wander of levels is estimated: each at first, then fewer.
_POOLED_DAILY = 30
_POOLED_EVERY = 5


class LevelSteps(NamedTuple):
    """A step of each device: its score, size and sessions since."""

    z: Floats
    size: Floats
    length: Ints


class DeviceLevels:
    """Log times of all series, by session of their device, and the median of what they share.

    The level of a series follows only what is its own, so that a change of the whole device stays visible.
    """

    def __init__(self) -> None:
        self.times: Floats = np.full((0, SESSIONS), np.nan)
        self.device_of: Ints = np.zeros(0, dtype=np.int64)
        self._own: Floats = np.zeros(0)
        self._seen: Ints = np.zeros(0, dtype=np.int64)
        #: Told changes, which are taken out of later values.
        self._offset: Floats = np.zeros(0)
        self.shared: Floats = np.full((0, SESSIONS), np.nan)
        self.ticks: Ints = np.zeros((0, SESSIONS), dtype=np.int64)
        self.days: Ints = np.zeros((0, SESSIONS), dtype=np.int64)
        self.sessions: Ints = np.zeros(0, dtype=np.int64)
        self._wander = Wander(0.5, 0.5)
        self._pools = 0
        self._pooled_spread: dict[tuple[int, int], float] = {}

    def grow(self, device_of: Ints, devices: int) -> None:
        """Have room for these series, each with the row of its device, and for so many devices."""
        more = len(device_of) - len(self.device_of)
        if more > 0:
            self.times = np.vstack([self.times, np.full((more, SESSIONS), np.nan)])
            self._own = np.concatenate([self._own, np.zeros(more)])
            self._seen = np.concatenate([self._seen, np.zeros(more, dtype=np.int64)])
            self._offset = np.concatenate([self._offset, np.zeros(more)])
        self.device_of = device_of
        more = devices - len(self.sessions)
        if more > 0:
            self.shared = np.vstack([self.shared, np.full((more, SESSIONS), np.nan)])
            self.ticks = np.vstack([self.ticks, np.zeros((more, SESSIONS), dtype=np.int64)])
            self.days = np.vstack([self.days, np.zeros((more, SESSIONS), dtype=np.int64)])
            self.sessions = np.concatenate([self.sessions, np.zeros(more, dtype=np.int64)])

    def push(self, rows: Ints, times: Floats, *, tick: int, day: int) -> Ints:
        """Add one session of each device of these series; return the devices."""
        devices = np.unique(self.device_of[rows])
        is_present = np.zeros(len(self.sessions), dtype=bool)
        is_present[devices] = True
        shifted = np.flatnonzero(is_present[self.device_of])
        self.times[shifted] = np.roll(self.times[shifted], -1, axis=1)
        self.times[shifted, -1] = np.nan
        values = times - self._offset[rows]
        self.times[rows, -1] = values
        shared = self._shared(rows, values)
        self.shared[devices] = np.roll(self.shared[devices], -1, axis=1)
        self.shared[devices, -1] = shared[devices]
        for numbers, new in ((self.ticks, tick), (self.days, day)):
            numbers[devices] = np.roll(numbers[devices], -1, axis=1)
            numbers[devices, -1] = new
        self.sessions[devices] = np.minimum(self.sessions[devices] + 1, SESSIONS)
        rest = values - shared[self.device_of[rows]]
        seen = self._seen[rows]
        gain = np.maximum(1.0 / (seen + 1.0), _LEAST_GAIN)
        self._own[rows] += gain * (rest - self._own[rows])
        self._seen[rows] = seen + 1
        return devices

    def _shared(self, rows: Ints, values: Floats) -> Floats:
        """Return, by device, the median deviation of its series from their levels; 0 for a new device."""
        shared = np.zeros(len(self.sessions))
        known = self._seen[rows] > 0
        device, rest = self.device_of[rows][known], (values - self._own[rows])[known]
        order = np.lexsort((rest, device))
        device, rest = device[order], rest[order]
        found, first, counts = np.unique(device, return_index=True, return_counts=True)
        shared[found] = (rest[first + (counts - 1) // 2] + rest[first + counts // 2]) / 2
        return shared

    def pool(self) -> None:
        """Learn how the levels of all devices wander. Once a day."""
        self._pools += 1
        if self._pools > _POOLED_DAILY and self._pools % _POOLED_EVERY:
            return
        self._wander = wander(self.shared, self.sessions)
        for after in _AFTER:
            for before in _BEFORE:
                steps = self._steps_of(self.shared, self.sessions, after, before)
                spread, counts = row_medians(np.abs(steps))
                known = counts >= 5
                if known.any():
                    self._pooled_spread[after, before] = float(np.median(spread[known])) * MAD_TO_SIGMA

    def _steps_of(self, shared: Floats, sessions: Ints, after: int, before: int) -> Floats:
        """Return the step at the end of each stretch of sessions; NaN where there are too few for one."""
        weights = step_weights(self._wander, after, before)
        if shared.shape[1] < len(weights):
            return np.full((len(shared), 1), np.nan)
        stretches = np.lib.stride_tricks.sliding_window_view(np.nan_to_num(shared), len(weights), axis=1)
        steps: Floats = stretches @ weights
        first = shared.shape[1] - sessions
        is_whole = np.arange(steps.shape[1])[None, :] >= first[:, None]
        return np.where(is_whole, steps, np.nan)

    def scan(self, devices: Ints) -> LevelSteps:
        """Return the strongest step of each device in its latest sessions."""
        z_all, size_all = np.zeros((len(_AFTER), len(devices))), np.zeros((len(_AFTER), len(devices)))
        able = np.zeros(len(devices), dtype=bool)
        for before in _BEFORE:
            places = np.flatnonzero(~able & (self.sessions[devices] >= _AFTER[-1] + before))
            if not len(places):
                continue
            able[places] = True
            rows = devices[places]
            for place, after in enumerate(_AFTER):
                z_all[place, places], size_all[place, places] = self._scores(rows, after, before)
        best = np.abs(z_all).argmax(axis=0)
        ordinal = np.arange(len(devices))
        return LevelSteps(z_all[best, ordinal], size_all[best, ordinal], np.array(_AFTER)[best])

    def _scores(self, rows: Ints, after: int, before: int) -> tuple[Floats, Floats]:
        shared = self.shared[rows]
        steps = self._steps_of(shared, self.sessions[rows], after, before)
        size: Floats = np.nan_to_num(steps[:, -1])
        spread, degrees = self._spread(steps[:, : -after - 1], after, before)
        spread = np.maximum(spread, self._spread_of_absence(rows, after))
        z = normal_scores(size / spread, degrees)
        base = np.median(shared[:, -after - _LEAST_BEFORE : -after], axis=1)
        least = (np.sign(size)[:, None] * (shared[:, -after:] - base[:, None])).min(axis=1)
        return np.where(least >= _CONFIRMING_SHARE * np.abs(size), z, 0.0), size

    def _spread_of_absence(self, rows: Ints, after: int) -> Floats:
        """Return how far a level may wander where a device was away before or since a step; 0 elsewhere."""
        apart = np.diff(self.days[rows], axis=1)
        columns = np.arange(1, SESSIONS)[None, :]
        is_known = columns > (SESSIONS - self.sessions[rows])[:, None]
        usual = row_medians(np.where(is_known, apart, np.nan))[0]
        longest = np.where(is_known, apart, 0)[:, -after - 2 :].max(axis=1)
        was_away = longest > np.maximum(_AWAY_DAYS, _AWAY_TIMES * np.nan_to_num(usual))
        known = np.where(
            np.arange(SESSIONS)[None, :] >= (SESSIONS - self.sessions[rows])[:, None],
            self.shared[rows],
            np.nan,
        )
        middle = row_medians(known)[0]
        wander = row_medians(np.abs(known - middle[:, None]))[0] * MAD_TO_SIGMA * np.sqrt(2.0)
        return np.where(was_away, np.nan_to_num(wander), 0.0)

    def _spread(self, past: Floats, after: int, before: int) -> tuple[Floats, Floats]:
        """Return the standard deviation of steps without a change, and its degrees of freedom."""
        if not past.shape[1]:
            past = np.full((len(past), 1), np.nan)
        middle, counts = row_medians(np.abs(past))
        # Neighbouring stretches share most of their sessions.
        weight = 2.0 * counts / (after + 4.0)
        own = np.where(counts > 0, middle * MAD_TO_SIGMA, 0.0)
        pooled = self._pooled_spread.get((after, before), _UNKNOWN_SPREAD)
        variance = (_PRIOR_DEGREES * pooled**2 + weight * own**2) / (_PRIOR_DEGREES + weight)
        sigma: Floats = np.maximum(np.sqrt(variance), _LEAST_SPREAD)
        return sigma, np.asarray(_PRIOR_DEGREES + weight, dtype=np.float64)

    def planned(self, device: int, tick: int, rows: Ints, others: Ints) -> tuple[float, float, int]:
        """Return the step of some series of a device at a known session: size, variance, sessions since.

        Args:
            device: row of the device.
            tick: of the first session with the new version.
            rows: the series whose version changed.
            others: those of the same device whose did not: what moves both is no step.
        """
        if len(others):
            shared = self._block(rows) - self._block(others)
        elif len(rows) < (self.device_of == device).sum():
            shared = self._block(rows)
        else:
            shared = self.shared[device]
        is_known = ~np.isnan(shared)
        is_known[: SESSIONS - int(self.sessions[device])] = False
        history, ticks = shared[is_known], self.ticks[device][is_known]
        after = int((ticks >= tick).sum())
        before = len(history) - after
        if after < 1 or before < _LEAST_BEFORE:
            return 0.0, 0.0, 0
        used_after = max(length for length in (1, 2, *_AFTER) if length <= after)
        used_before = max(length for length in _BEFORE if length <= before)
        # The step as it was when so many sessions had followed it.
        history = history[: len(history) - (after - used_after)]
        sessions = np.array([len(history)])
        steps = self._steps_of(history[None, :], sessions, used_after, used_before)
        spread, _ = self._spread(steps[:, : -used_after - 1], max(used_after, _AFTER[0]), used_before)
        least = 0.0 if len(others) else float(self._spread_of_absence(np.array([device]), after)[0])
        return float(steps[0, -1]), max(float(spread[0]), least) ** 2, after

    def _block(self, rows: Ints) -> Floats:
        deviations = self.times[rows] - self._own[rows][:, None]
        return row_medians(np.ascontiguousarray(deviations.T))[0]

    def own_steps(self, rows: Ints, device: int, tick: int) -> Floats:
        """Return how far each of these series of a device moved at a session; NaN where that is not known."""
        is_after = self.ticks[device] >= tick
        after = self.times[rows][:, is_after][:, :8]
        before = self.times[rows][:, ~is_after][:, -10:]
        return row_medians(after)[0] - row_medians(before)[0]

    def adjust(self, rows: Ints, device: int, tick: int, size: float) -> None:
        """Take a told change out of these series, from a session of their device on."""
        is_after = self.ticks[device] >= tick
        self.times[rows] = np.where(is_after[None, :], self.times[rows] - size, self.times[rows])
        self._offset[rows] += size
        members = np.flatnonzero(self.device_of == device)
        if len(rows) == len(members):
            self.shared[device] = np.where(is_after, self.shared[device] - size, self.shared[device])
            return
        before = np.where(is_after, np.nan, self.shared[device])
        own = row_medians(self.times[rows] - before[None, :])[0]
        self._own[rows] = np.where(np.isnan(own), self._own[rows], own)
        shared = row_medians(np.ascontiguousarray((self.times[members] - self._own[members][:, None]).T))[0]
        self.shared[device] = np.where(is_after & ~np.isnan(shared), shared, self.shared[device])


class Wander(NamedTuple):
    """How levels wander without a change: an AR(1) process and noise of each session."""

    #: Lag-1 correlation of the process, and its share of the variance.
    correlation: float
    share: float


_DISTANCES = (1, 2, 4, 8, 16)
_CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)


def wander(shared: Floats, sessions: Ints) -> Wander:
    """Estimate how levels wander, by a robust variogram of sessions 1 to 16 apart."""
    columns = np.arange(shared.shape[1])[None, :]
    known = np.where(columns >= (shared.shape[1] - sessions)[:, None], shared, np.nan)
    apart = []
    for distance in _DISTANCES:
        middle, counts = row_medians(np.abs(known[:, distance:] - known[:, :-distance]))
        able = counts >= 2 * distance + 5
        apart.append(float(np.median(middle[able])) ** 2 if able.any() else np.nan)
    variogram = np.array(apart)
    able = ~np.isnan(variogram)
    if able.sum() < 3 or variogram[able].max() <= 0:
        return Wander(0.5, 0.5)
    best, least = Wander(0.5, 0.5), np.inf
    for correlation in _CORRELATIONS:
        shape = 1.0 - correlation ** np.array(_DISTANCES)[able]
        for share in (0.0, 0.25, 0.5, 0.75, 0.9, 1.0):
            model = share * shape + 1.0 - share
            ratio = np.log(variogram[able] + 1e-12) - np.log(model)
            error = float(((ratio - ratio.mean()) ** 2).sum())
            if error < least - 1e-9:
                best, least = Wander(correlation, share), error
    return best


@cache
def step_weights(process: Wander, after: int, before: int) -> Floats:
    """Return the weights of sessions whose sum is the best linear estimate of a step among them.

    Generalized least squares with an unknown level, and the covariance of the process.
    """
    count = after + before
    places = np.arange(count)
    distance = np.abs(places[:, None] - places[None, :])
    noise = (1.0 - process.share) + 0.02
    covariance = process.share * process.correlation**distance + noise * np.eye(count)
    design = np.column_stack([np.ones(count), places >= before])
    solved = np.linalg.solve(covariance, design)
    weights: Floats = np.linalg.solve(design.T @ solved, solved.T)[1]
    return weights
