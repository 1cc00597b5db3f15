"""What all series of a device share: its absolute level, which heat and age move, and steps in it."""

import math
from collections.abc import Collection

import numpy as np

from farm.core.results.history.changes.device_level.wander import (
    UNKNOWN_PROCESSES,
    Processes,
    Shift,
    processes,
    shifts,
    spread_of_absence,
    step_of_any_process,
)
from farm.core.results.history.changes.differences import FEW_DEGREES, Difference
from farm.core.results.history.changes.noise import Bools, Floats, Ints, row_medians

#: Sessions of a device that are kept.
SESSIONS = 100
#: Levels jump and return within days: a step that is not as large needs so many sessions.
_LARGE, _LEAST_AFTER, _LEAST_AFTER_SMALL = math.log(1.5), 3, 6
#: Sessions before a step, at least, and those beside which it is confirmed: a level that jumped returns.
_LEAST_BEFORE = 5
_BEFORE = (_LEAST_BEFORE, 15)
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
#: What the farm's devices say of the level of one is from before so many latest sessions of it.
_LATEST = 25
#: Sessions on each side of a known session in which series are measured together.
_SHARED_BEFORE, _SHARED_AFTER = 20, 12
#: Sessions that show what a drift, or a step long ago, has come to.
LATEST_OF_DRIFT = 5
#: Sessions on each side of the step of one series, at most.
_OWN_AFTER, _OWN_BEFORE = 8, 10
_LEAST_GAIN = 0.1
#: Other devices say what a room does, from so many on.
_LEAST_OTHERS = 3
#: Series are compared with others that have this share of their sessions, before a step and since.
_LEAST_SHARED = 0.5
#: Absolute times of two sessions differ by so much, in log units, before anything is known.
_UNKNOWN_SIGMA = 0.05


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

    @staticmethod
    def _is_known(sessions: Ints) -> Bools:
        """Return which columns hold a session, of devices with so many."""
        known: Bools = np.arange(SESSIONS)[None, :] >= (SESSIONS - sessions)[:, None]
        return known

    def scan(self, devices: Ints) -> list[Shift]:
        """Return the step or drift of each device that explains it best; a score of 0 if it may be chance."""
        usual = self._processes(int(self.ticks[devices, -_LATEST].max()))
        is_known = self._is_known(self.sessions[devices])
        levels, days = self.shared[devices], self.days[devices].astype(np.float64)
        found = shifts(levels, days, is_known, usual)
        return [
            shift if self._is_confirmed(device, shift) else shift._replace(z=0.0)
            for device, shift in zip(devices, found, strict=True)
        ]

    def _is_confirmed(self, device: int, shift: Shift) -> bool:
        """Return whether all sessions since confirm a shift by a share of it, or of many three of four.

        Single hot sessions are no step, and where there are many of them, some follow each other: there, a
        step needs more sessions. Of a drift and of a step long ago, half of the latest ones do.
        """
        if not shift.z:
            return False
        after, wide = shift.length, abs(shift.size)
        bases = [np.median(self.shared[device, max(-after - n, -SESSIONS) : -after]) for n in _BEFORE]
        moved = (np.sign(shift.size) * (self.shared[device, -after:, None] - bases)).min(axis=1)
        is_large = wide >= _LARGE and not shift.is_drift
        if after < (_LEAST_AFTER if is_large else _LEAST_AFTER_SMALL):
            return False
        if shift.is_slow:
            return bool(np.median(moved[-LATEST_OF_DRIFT:]) >= _MIDDLE_SHARE * wide)
        least = np.sort(moved)[after // _ONE_OF if after > _ALL_CONFIRM else 0]
        if (
            least < _CONFIRMING_SHARE * wide
            or np.median(moved) < _MIDDLE_SHARE * wide
            or np.median(moved[-_LATEST_HELD:]) < _HELD_SHARE * wide
        ):
            return False
        levels = np.where(self._is_known(self.sessions), self.shared, np.nan)
        before = np.lib.stride_tricks.sliding_window_view(levels[:, :-1], _LEAST_BEFORE, axis=1)
        apart = (levels[:, _LEAST_BEFORE:] - row_medians(before)[0])[:, :-after]
        is_far = np.sign(shift.size) * apart >= least
        usual = (1.0 + is_far.sum()) / (1.0 + (~np.isnan(apart)).sum())
        own = is_far[device].sum(), (~np.isnan(apart[device])).sum()
        chance = (own[0] + _PRIOR_SESSIONS * usual) / (own[1] + _PRIOR_SESSIONS)
        return bool(chance**after <= _BY_CHANCE)

    def planned(
        self, device: int, tick: int, rows: Ints, others: Ints, *, counts_absence: bool = True
    ) -> Difference:
        """Return the step of some series of a device at a known session.

        Args:
            device: row of the device.
            tick: of the first session with the new version.
            rows: the series whose version changed.
            others: those of the same device whose did not: what moves both is no step. Some that were hardly
                measured with them, before or since, are left out.
            counts_absence: whether it may be how far the level wandered while the device was away.
        """
        others = self.measured_with(rows, others, device, tick)
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
        if counts_absence and not len(others):
            # The step itself is no wander.
            levels = self.shared[[device]] - step.size * (self.ticks[[device]] >= tick)
            away, known = self.days[[device]].astype(np.float64), self._is_known(self.sessions[[device]])
            variance = max(variance, float(spread_of_absence(levels, away, known, [after])[0, 0]) ** 2)
        return Difference(step.size, variance, step.size, step.degrees, after, before)

    def _processes(self, tick: int) -> Processes:
        """Return how the levels of all devices wandered before a session."""
        if tick not in self._processes_by_tick:
            is_before = self._is_known(self.sessions) & (self.ticks < tick) & ~np.isnan(self.shared)
            found = processes(self.shared, self.days.astype(np.float64), is_before)
            self._processes_by_tick[tick] = found
        return self._processes_by_tick[tick]

    def measured_with(self, rows: Ints, others: Ints, device: int, tick: int) -> Ints:
        """Return the others that were measured with some series often enough, before a step and since."""
        is_after = self.ticks[device] >= tick
        own, theirs = ~np.isnan(self.times[rows]).all(axis=0), ~np.isnan(self.times[others])
        is_enough = np.ones(len(others), dtype=bool)
        for side in (_latest(own & ~is_after, _SHARED_BEFORE), _first(own & is_after, _SHARED_AFTER)):
            is_enough &= theirs[:, side].sum(axis=1) >= max(_LEAST_SHARED * side.sum(), 1)
        return others[is_enough]

    def block(self, rows: Ints) -> Floats:
        """Return the median deviation of some series of a device from their levels, by session."""
        deviations = self.times[rows] - self._own[rows][:, None]
        return row_medians(np.ascontiguousarray(deviations.T))[0]

    def sessions_since(self, device: int, tick: int) -> int:
        """Return how many sessions a device has had from one on."""
        return int((self.ticks[device] >= tick).sum())

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

    def steps_of_others(self, ticks: Collection[int], devices: Collection[int]) -> list[float]:
        """Return how far the levels of all other devices moved in the middle, at each of some sessions.

        None of a session of which too few others tell.

        Args:
            ticks: first sessions of steps.
            devices: whose levels do not count.
        """
        others = np.array([d for d in range(len(self.sessions)) if d not in devices], dtype=np.int64)
        if len(others) < _LEAST_OTHERS:
            return []
        known, levels = self._is_known(self.sessions[others]), self.shared[others]
        found = []
        for tick in sorted(ticks):
            is_after = self.ticks[others] >= tick
            after, before = _first(known & is_after, _OWN_AFTER), _latest(known & ~is_after, _OWN_BEFORE)
            since, until = (row_medians(np.where(side, levels, np.nan))[0] for side in (after, before))
            steps = (since - until)[before.sum(axis=1) >= _LEAST_BEFORE]
            steps = steps[~np.isnan(steps)]
            if len(steps) >= _LEAST_OTHERS:
                found.append(float(np.median(steps)))
        return found

    def adjust(self, rows: Ints, device: int, tick: int, size: float, *, is_drift: bool = False) -> None:
        """Take a told change out of these series, from a session of their device on.

        What was not measured before belongs to a change of all that was, and is compared with it. A drift
        grows from that session to the latest one.
        """
        is_after = self.ticks[device] >= tick
        change = np.where(is_after, size, 0.0)
        if is_drift:
            days = self.days[device] - self.days[device][is_after][0]
            change *= days / max(days[-1], 1)
        members = np.flatnonzero(self.device_of == device)
        rest = members[~np.isin(members, rows)]
        was_measured, is_measured = (
            (~np.isnan(self.times[rest][:, side])).any(axis=1) for side in (~is_after, is_after)
        )
        is_of_all = bool(is_after.any()) and not (was_measured & is_measured).any()
        if is_of_all:
            rows = np.concatenate([rows, rest[is_measured]])
        self.times[rows] -= change
        self._offset[rows] += size
        if is_of_all:
            self.shared[device] -= change
            return
        before = np.where(is_after, np.nan, self.shared[device])
        own = row_medians(self.times[rows] - before[None, :])[0]
        self._own[rows] = np.where(np.isnan(own), self._own[rows], own)
        shared = row_medians(np.ascontiguousarray((self.times[members] - self._own[members][:, None]).T))[0]
        self.shared[device] = np.where(is_after & ~np.isnan(shared), shared, self.shared[device])


def _latest(flags: Bools, count: int) -> Bools:
    """Keep so many of the latest flags that are set, of each row."""
    return flags & (np.cumsum(flags[..., ::-1], axis=-1)[..., ::-1] <= count)


def _first(flags: Bools, count: int) -> Bools:
    """Keep so many of the first flags that are set, of each row."""
    return flags & (np.cumsum(flags, axis=-1) <= count)
