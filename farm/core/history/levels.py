"""What all series of a device share: its absolute level, which heat and age move, and steps in it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from farm.core.history.noise import MAD_TO_SIGMA, Floats, Ints, normal_scores, row_medians

#: Sessions of a device that are kept.
SESSIONS = 100
#: Numbers of sessions after a step, and before it. Short: the level of a device wanders.
_LENGTHS = ((3, 8), (4, 8), (5, 10), (6, 10), (8, 12))
#: Sessions before a step, at least.
_LEAST_BEFORE = 5
#: A session of a step moves at least by this share of the step.
_CONFIRMING_SHARE = 0.4
_LEAST_GAIN = 0.1
_LEAST_SPREAD = 0.002
_PRIOR_DEGREES = 4.0


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
        self.sessions: Ints = np.zeros(0, dtype=np.int64)
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
            self.sessions = np.concatenate([self.sessions, np.zeros(more, dtype=np.int64)])

    def push(self, rows: Ints, times: Floats, *, tick: int) -> Ints:
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
        for store, new in ((self.shared, shared), (self.ticks, np.full(len(shared), tick))):
            kept = store[devices, 1:]
            store[devices, :-1] = kept
            store[devices, -1] = new[devices]
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
        """Learn how far the levels of all devices wander. Once a day."""
        for after, before in _LENGTHS:
            steps, has = _rolling(self.shared, self.sessions, after, before)
            spread, counts = row_medians(np.abs(np.where(has, steps, np.nan)))
            known = counts >= 5
            if known.any():
                self._pooled_spread[after, before] = float(np.median(spread[known])) * MAD_TO_SIGMA

    def scan(self, devices: Ints) -> LevelSteps:
        """Return the strongest step of each device in its latest sessions."""
        scores, sizes = [], []
        for after, before in _LENGTHS:
            z, size = self._steps(self.shared[devices], self.sessions[devices], after, before)
            scores.append(z)
            sizes.append(size)
        z_all, size_all = np.array(scores), np.array(sizes)
        best = np.abs(z_all).argmax(axis=0)
        ordinal = np.arange(len(devices))
        lengths = np.array([after for after, _ in _LENGTHS])
        return LevelSteps(z_all[best, ordinal], size_all[best, ordinal], lengths[best])

    def _steps(self, shared: Floats, sessions: Ints, after: int, before: int) -> tuple[Floats, Floats]:
        steps, has = _rolling(shared, sessions, after, before)
        size = np.where(has[:, -1], steps[:, -1], 0.0)
        past = np.abs(np.where(has, steps, np.nan))[:, : -after - 1]
        spread, counts = row_medians(past)
        # Neighbouring windows share most of their sessions.
        weight = 2.0 * counts / (after + before)
        own = np.where(counts > 0, spread * MAD_TO_SIGMA, 0.0)
        pooled = self._pooled_spread.get((after, before), 0.03)
        variance = (_PRIOR_DEGREES * pooled**2 + weight * own**2) / (_PRIOR_DEGREES + weight)
        z = normal_scores(size / np.maximum(np.sqrt(variance), _LEAST_SPREAD), _PRIOR_DEGREES + weight)
        base = np.median(shared[:, -after - _LEAST_BEFORE : -after], axis=1)
        least = (np.sign(size)[:, None] * (shared[:, -after:] - base[:, None])).min(axis=1)
        return np.where(least >= _CONFIRMING_SHARE * np.abs(size), z, 0.0), size

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
        used_after, used_before = min(after, 8), min(before, 10)
        # The step as it was when so many sessions had followed it.
        history = history[: len(history) - (after - used_after)]
        step = float(np.median(history[-used_after:]) - np.mean(history[:-used_after][-used_before:]))
        steps, has = _rolling(history[None, :], np.array([len(history)]), used_after, used_before)
        spread, counts = row_medians(np.abs(np.where(has, steps, np.nan))[:, : -used_after - 1])
        weight = 2.0 * counts[0] / (used_after + used_before)
        own = float(spread[0]) * MAD_TO_SIGMA if counts[0] else 0.0
        nearest = min(_LENGTHS, key=lambda pair: abs(pair[0] - used_after))
        pooled = self._pooled_spread.get(nearest, 0.03)
        variance = (_PRIOR_DEGREES * pooled**2 + weight * own**2) / (_PRIOR_DEGREES + weight)
        return step, max(variance, _LEAST_SPREAD**2), after

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


def _rolling(shared: Floats, sessions: Ints, after: int, before: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the step at the end of each stretch of sessions, and where there are enough for one."""
    filled = np.where(np.isnan(shared), 0.0, shared)
    sums = np.concatenate([np.zeros((len(shared), 1)), np.cumsum(filled, axis=1)], axis=1)
    width = shared.shape[1]
    ends = np.arange(1, width + 1)
    starts, middles = np.maximum(ends - after - before, 0), np.maximum(ends - after, 0)
    mean_after = (sums[:, ends] - sums[:, middles]) / after
    mean_before = (sums[:, middles] - sums[:, starts]) / before
    has = (ends[None, :] - after - before) >= (width - sessions)[:, None]
    return mean_after - mean_before, has
