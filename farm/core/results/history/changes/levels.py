"""What all series of a device share: its absolute level, which heat and age move, and steps in it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from farm.core.results.history.changes.differences import FEW_DEGREES, Difference
from farm.core.results.history.changes.noise import (
    Bools,
    Floats,
    Ints,
    normal_scores,
    row_medians,
)
from farm.core.results.history.changes.wander import (
    UNKNOWN_PROCESSES,
    UNKNOWN_WANDER,
    Processes,
    Spread,
    estimated_wander,
    moderated_spread,
    pooled_spread,
    processes,
    spread_of,
    spread_of_absence,
    step_of_any_process,
    steps,
)

#: Sessions of a device that are kept.
SESSIONS = 100
#: Sessions after a step. Few: the level of a device wanders. Fewer than three only at a known session.
_AFTER = (1, 2, 3, 4, 5, 6, 8, 12)
_LEAST_AFTER = 3
#: Levels jump and return within days: a step that is not as large needs so many sessions.
_LARGE, _LEAST_AFTER_SMALL = math.log(1.5), 6
#: Sessions before a step, at most and at least.
_BEFORE = 20
_WINDOW = _BEFORE + _AFTER[-1]
_LEAST_BEFORE = 5
_LEAST_BEFORE_SCAN = 10
#: A session of a step moves at least by this share of the step; of more than six, one of four may not.
_CONFIRMING_SHARE = 0.4
_ALL_CONFIRM = 6
#: Half of them move by this share: one hot session beside the step makes it no larger.
_MIDDLE_SHARE = 0.6
#: Half of so many latest ones do by this share: a level that returns slowly is no step.
_LATEST_HELD, _HELD_SHARE = 3, 0.8
_ONE_OF = 4
#: The chance that as many sessions in a row are by chance as far from the level before.
_BY_CHANCE = 2e-6
#: What the farm's devices say of such sessions counts as so many of one.
_PRIOR_SESSIONS = 20.0
#: Sessions before a step, at most, where every process is tried.
_LONG_BEFORE = 50
#: Sessions on each side of the step of one series, at most.
_OWN_AFTER, _OWN_BEFORE = 8, 10
#: So many of the latest steps are no noise: one of them may be a change.
_LATEST = _AFTER[-1] + 1
_LEAST_GAIN = 0.1
#: Series are compared with others that have this share of their sessions, before a step and since.
_LEAST_SHARED = 0.5
#: Absolute times of two sessions differ by so much, in log units, before anything is known.
_UNKNOWN_SIGMA = 0.05
#: Steps of a device before its spread takes part in that of all.
_POOLED_FROM = 5
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
        #: Steps before the latest sessions that each session showed, over their standard errors.
        self._steps: Floats = np.full((len(_AFTER), 0, SESSIONS), np.nan)
        self._wander = UNKNOWN_WANDER
        self._pools = 0
        #: Of steps of the newest session, and that of steps of more sessions as its multiple.
        self._spread = spread_of(UNKNOWN_WANDER)
        self._shape = np.ones(len(_AFTER))
        #: Before the session of a step.
        self._processes_by_tick: dict[int, Processes] = {}

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
            self._steps = np.concatenate(
                [self._steps, np.full((len(_AFTER), more, SESSIONS), np.nan)], axis=1
            )

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
        self._steps[:, devices] = np.roll(self._steps[:, devices], -1, axis=2)
        self._steps[:, devices, -1] = np.nan
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
        """Return, by device, the median deviation of its series from their levels.

        Series that are new say nothing of it: with them alone, it is that of the session before. 0 for a new
        device.
        """
        shared = self.shared[:, -1].copy()
        shared[self.sessions == 0] = 0.0
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
        days, is_known = self.days.astype(np.float64), self._is_known(self.sessions)
        process = estimated_wander(self.shared, days, is_known, self._wander)
        is_other = process.shape != self._wander.shape
        self._wander = process
        if is_other:
            for device in range(len(self.sessions)):
                self._recompute(device)
        middles, counts = row_medians(np.abs(self._steps))
        known = counts >= _POOLED_FROM
        if not known[0].any():
            self._spread, self._shape = spread_of(process), np.ones(len(_AFTER))
            return
        self._spread = pooled_spread(middles[0, known[0]], counts[0, known[0]])
        for place in range(1, len(_AFTER)):
            both = known[0] & known[place]
            # Levels that never move have no shape.
            if both.any() and np.median(middles[0, both]) > 0:
                self._shape[place] = np.median(middles[place, both]) / np.median(middles[0, both])

    def _recompute(self, device: int) -> None:
        """Estimate all steps of a device again, as its process has become known better."""
        first = SESSIONS - int(self.sessions[device])
        self._steps[:, device] = np.nan
        if SESSIONS - first >= _WINDOW:
            size, error = self._all_steps(
                self.shared[device, first:], self.days[device, first:], _WINDOW, _AFTER
            )
            self._steps[:, device, first + _WINDOW - 1 :] = size / error

    def _all_steps(
        self, history: Floats, days: Ints, width: int, afters: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """Return the steps before the last sessions of each stretch of a history, and standard errors."""
        stretches = np.lib.stride_tricks.sliding_window_view(history, width)
        all_days = np.lib.stride_tricks.sliding_window_view(days.astype(np.float64), width)
        return steps(stretches, all_days, np.ones(stretches.shape, dtype=bool), afters, self._wander)

    @staticmethod
    def _is_known(sessions: Ints) -> Bools:
        """Return which columns hold a session, of devices with so many."""
        known: Bools = np.arange(SESSIONS)[None, :] >= (SESSIONS - sessions)[:, None]
        return known

    def scan(self, devices: Ints) -> LevelSteps:
        """Return the strongest step of each device in its latest sessions."""
        after, sessions = np.array(_AFTER)[:, None], self.sessions[devices]
        days, is_known = self.days[devices].astype(np.float64), self._is_known(sessions)
        shared, window = self.shared[devices], slice(-_WINDOW, None)
        size, error = steps(shared[:, window], days[:, window], is_known[:, window], _AFTER, self._wander)
        is_possible = sessions >= after + _LEAST_BEFORE
        self._steps[:, devices, -1] = np.where(is_possible, size / error, np.nan)
        past = self._steps[:, devices, :-_LATEST]
        own = moderated_spread(past[0], self._spread, np.ones(1))
        usual = Spread(own.sigma * self._shape[:, None], own.degrees)
        spread = moderated_spread(past, usual, after.astype(np.float64))
        wide = np.maximum(spread.sigma * error, spread_of_absence(shared, days, is_known, _AFTER))
        z = normal_scores(size / wide, spread.degrees)
        least = np.where(np.abs(size) >= _LARGE, _LEAST_AFTER, _LEAST_AFTER_SMALL)
        is_possible &= (sessions >= after + _LEAST_BEFORE_SCAN) & (after >= least)
        z = np.where(self._is_confirmed(devices, size, is_possible), z, 0.0)
        best = np.abs(z).argmax(axis=0)
        ordinal = np.arange(len(devices))
        return LevelSteps(z[best, ordinal], size[best, ordinal], np.array(_AFTER)[best])

    def _is_confirmed(self, devices: Ints, size: Floats, is_possible: Bools) -> Bools:
        """Return which possible steps all sessions since confirm by a share of it, or of many three of four.

        Single hot sessions are no step, and where there are many of them, some follow each other: there, a
        step needs more sessions.
        """
        confirmed, least = np.zeros(size.shape, dtype=bool), np.zeros(size.shape)
        for place in np.flatnonzero(is_possible.any(axis=1)):
            after, wide = _AFTER[place], np.abs(size[place])
            base = row_medians(self.shared[devices, -after - _LEAST_BEFORE : -after])[0]
            moved = np.sign(size[place])[:, None] * (self.shared[devices, -after:] - base[:, None])
            least[place] = np.sort(moved, axis=1)[:, after // _ONE_OF if after > _ALL_CONFIRM else 0]
            middle, held = row_medians(moved)[0], row_medians(moved[:, -_LATEST_HELD:])[0]
            confirmed[place] = is_possible[place] & (least[place] >= _CONFIRMING_SHARE * wide)
            confirmed[place] &= (middle >= _MIDDLE_SHARE * wide) & (held >= _HELD_SHARE * wide)
        if not confirmed.any():
            return confirmed
        levels = np.where(self._is_known(self.sessions), self.shared, np.nan)
        before = np.lib.stride_tricks.sliding_window_view(levels[:, :-1], _LEAST_BEFORE, axis=1)
        apart = levels[:, _LEAST_BEFORE:] - row_medians(before)[0]
        is_known = ~np.isnan(apart)
        for place, at in np.argwhere(confirmed):
            after = _AFTER[place]
            is_far = np.sign(size[place, at]) * apart[:, :-after] >= least[place, at]
            usual = (1.0 + is_far.sum()) / (1.0 + is_known[:, :-after].sum())
            own = is_far[devices[at]].sum(), is_known[devices[at], :-after].sum()
            chance = (own[0] + _PRIOR_SESSIONS * usual) / (own[1] + _PRIOR_SESSIONS)
            confirmed[place, at] = chance**after <= _BY_CHANCE
        return confirmed

    def sessions_since(self, device: int, length: int) -> int:
        """Return the number of latest sessions with which a step of about that length fits best."""
        sessions = int(self.sessions[device])
        lengths = range(max(length // 2, 1), min(2 * length, sessions - _LEAST_BEFORE) + 1)
        width = min(_BEFORE + 2 * length, sessions)
        size, error = self._all_steps(
            self.shared[device, -width:], self.days[device, -width:], width, lengths
        )
        return lengths[int(np.abs(size / error)[:, 0].argmax())]

    def planned(self, device: int, tick: int, rows: Ints, others: Ints) -> Difference:
        """Return the step of some series of a device at a known session.

        Args:
            device: row of the device.
            tick: of the first session with the new version.
            rows: the series whose version changed.
            others: those of the same device whose did not: what moves both is no step. Some that were hardly
                measured with them, before or since, are left out.
        """
        others = self._measured_with(rows, others, device, tick)
        if len(others):
            shared = self.block(rows) - self.block(others)
        elif len(rows) < (self.device_of == device).sum():
            shared = self.block(rows)
        else:
            shared = self.shared[device]
        is_known = ~np.isnan(shared)
        is_known[: SESSIONS - int(self.sessions[device])] = False
        history, ticks = shared[is_known], self.ticks[device][is_known]
        after = int((ticks >= tick).sum())
        before = len(history) - after
        if not after or not before:
            return Difference(0.0, 0.0, 0.0, FEW_DEGREES, 0, 0)
        if before < _LEAST_BEFORE:
            size = float(np.median(history[before:]) - np.median(history[:before]))
            variance = _UNKNOWN_SIGMA**2 * (1.0 / after + 1.0 / before)
            return Difference(size, variance, size, FEW_DEGREES, after, before)
        usual = self._processes(tick)
        if len(others):
            # Without what all series of the device have in common, the process is another one.
            usual = usual._replace(likelihood=UNKNOWN_PROCESSES.likelihood)
        latest = slice(-after - _LONG_BEFORE, None)
        days = self.days[device][is_known].astype(np.float64)
        step = step_of_any_process(history[latest], days[latest], after, usual)
        variance = step.variance
        if not len(others):
            # The step itself is no wander.
            levels = self.shared[[device]] - step.size * (self.ticks[[device]] >= tick)
            away, known = self.days[[device]].astype(np.float64), self._is_known(self.sessions[[device]])
            variance = max(variance, float(spread_of_absence(levels, away, known, [after])[0, 0]) ** 2)
        return Difference(step.size, variance, step.size, step.degrees, after, before)

    def step_score(self, device: int, length: int) -> float:
        """Return the score of a step so many sessions ago, whatever the device's own process may be."""
        width = min(length + _LONG_BEFORE, int(self.sessions[device]))
        days = self.days[device, -width:].astype(np.float64)
        usual = self._processes(int(self.ticks[device, -length]))
        return step_of_any_process(self.shared[device, -width:], days, length, usual).z

    def _processes(self, tick: int) -> Processes:
        """Return how the levels of all devices wandered before a session."""
        if tick not in self._processes_by_tick:
            is_before = self._is_known(self.sessions) & (self.ticks < tick) & ~np.isnan(self.shared)
            found = processes(self.shared, self.days.astype(np.float64), is_before)
            self._processes_by_tick[tick] = found
        return self._processes_by_tick[tick]

    def _measured_with(self, rows: Ints, others: Ints, device: int, tick: int) -> Ints:
        """Return the others that were measured with some series often enough, before a step and since."""
        is_after = self.ticks[device] >= tick
        own, theirs = ~np.isnan(self.times[rows]).all(axis=0), ~np.isnan(self.times[others])
        is_enough = np.ones(len(others), dtype=bool)
        for side in (_latest(own & ~is_after, _BEFORE), _first(own & is_after, _AFTER[-1])):
            is_enough &= theirs[:, side].sum(axis=1) >= max(_LEAST_SHARED * side.sum(), 1)
        return others[is_enough]

    def block(self, rows: Ints) -> Floats:
        """Return the median deviation of some series of a device from their levels, by session."""
        deviations = self.times[rows] - self._own[rows][:, None]
        return row_medians(np.ascontiguousarray(deviations.T))[0]

    def own_steps(self, rows: Ints, device: int, tick: int, *, newest: int | None = None) -> Floats:
        """Return how far each of these series of a device moved since a session; NaN where that is not known.

        Args:
            rows: of the series.
            device: row of the device.
            tick: of the first session that moved.
            newest: how many of the latest sessions show it; None for the first ones since.
        """
        is_after = self.ticks[device] >= tick
        since = self.times[rows][:, is_after]
        after = since[:, :_OWN_AFTER] if newest is None else since[:, -newest:]
        before = self.times[rows][:, ~is_after][:, -_OWN_BEFORE:]
        return row_medians(after)[0] - row_medians(before)[0]

    def adjust(self, rows: Ints, device: int, tick: int, size: float) -> None:
        """Take a told change out of these series, from a session of their device on.

        What was not measured before belongs to a change of all that was, and is compared with it.
        """
        is_after = self.ticks[device] >= tick
        members = np.flatnonzero(self.device_of == device)
        rest = members[~np.isin(members, rows)]
        was_measured, is_measured = (
            (~np.isnan(self.times[rest][:, side])).any(axis=1) for side in (~is_after, is_after)
        )
        is_of_all = bool(is_after.any()) and not (was_measured & is_measured).any()
        if is_of_all:
            rows = np.concatenate([rows, rest[is_measured]])
        self.times[rows] = np.where(is_after[None, :], self.times[rows] - size, self.times[rows])
        self._offset[rows] += size
        if is_of_all:
            self.shared[device] = np.where(is_after, self.shared[device] - size, self.shared[device])
            self._steps[:, device, is_after] = np.nan
            return
        before = np.where(is_after, np.nan, self.shared[device])
        own = row_medians(self.times[rows] - before[None, :])[0]
        self._own[rows] = np.where(np.isnan(own), self._own[rows], own)
        shared = row_medians(np.ascontiguousarray((self.times[members] - self._own[members][:, None]).T))[0]
        self.shared[device] = np.where(is_after & ~np.isnan(shared), shared, self.shared[device])


def _latest(flags: Bools, count: int) -> Bools:
    """Keep so many of the latest flags that are set."""
    return flags & (np.cumsum(flags[::-1])[::-1] <= count)


def _first(flags: Bools, count: int) -> Bools:
    """Keep so many of the first flags that are set."""
    return flags & (np.cumsum(flags) <= count)
