"""Detection of changes, day by day: points in, changes out; it never looks ahead."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from farm.core.results.history.changes.breaks import Catalog, VersionBreak
from farm.core.results.history.changes.candidates import SHARE_OF_STEP, TOGETHER, CandidateFinder
from farm.core.results.history.changes.choice import LEAST_EFFECT, Candidate, significance, strongest
from farm.core.results.history.changes.levels import DeviceLevels
from farm.core.results.history.changes.noise import Ints
from farm.core.results.history.changes.points import Cause, Change, Point
from farm.core.results.history.changes.ratios import RatioHistory

#: Least scores of a scan: so high, because each session of each series is a look.
SCAN = 4.7
SCAN_DEVICE = 4.5
LEAST_DEVICE_STEP = 0.025
#: A drift fits at least as well as a step, less this.
_DRIFT_BONUS = 1.0
#: A step that takes so many sessions to be found is more probably a drift.
_SLOW_STEP = 8
#: After a drift was told, the same series drifts on for so many days without another change.
_DRIFT_DAYS = 120
#: A step that is found at once fits better than a drift, unless by this.
_STEP_BONUS = 0.7
#: After a drift was told, so many sessions are the new reference.
_KEPT_OF_DRIFT = 5
#: A break explains a scan's change within so many sessions of it.
_NEAR_SESSIONS = 3
#: A day has at most so many changes.
_MOST_CHANGES = 500


def detect(points: Iterable[Point]) -> list[Change]:
    """Return the changes in a history of points, in the order in which they are told.

    A day's changes follow from the points up to that day alone. The order of the points does not matter, and
    a point that is there twice counts once.
    """
    ordered = sorted(set(points), key=lambda point: (point.day, point.time, point.series))
    detector = Detector()
    found: list[Change] = []
    for day, of_day in groupby(ordered, key=lambda point: point.day):
        found += detector.add_day(day, list(of_day))
    return found


class Detector:
    """What is known up to a day."""

    def __init__(self) -> None:
        self._catalog = Catalog()
        self._ratios = RatioHistory()
        self._levels = DeviceLevels()
        self._finder = CandidateFinder(self._catalog, self._ratios, self._levels)
        self._tick = 0
        self._day: int | None = None
        #: By tick.
        self._days: list[int] = [0]
        #: By row: direction and day of the last drift.
        self._drift: dict[int, tuple[float, int]] = {}

    def add_day(self, day: int, points: Sequence[Point]) -> list[Change]:
        """Add all points of a day, in order of time; return the changes that can be told now.

        Raises:
            ValueError: the day is not later than the one before.
        """
        if self._day is not None and day <= self._day:
            raise ValueError(f"day {day} is not later than day {self._day}")
        self._day = day
        rows: set[int] = set()
        devices: set[int] = set()
        for wave in _waves(points):
            wave_rows, wave_devices = self._push(day, wave)
            rows |= wave_rows
            devices |= wave_devices
        self._ratios.pool()
        self._levels.pool()
        return self._changes(day, np.array(sorted(rows), dtype=np.int64), sorted(devices))

    def _push(self, day: int, wave: Sequence[Point]) -> tuple[set[int], set[int]]:
        self._tick += 1
        self._days.append(day)
        tick, catalog = self._tick, self._catalog
        rows, ratios, errors, timed, times = [], [], [], [], []
        for point in wave:
            row = catalog.row(point)
            for known in catalog.observe(row, point, tick):
                if known.is_told:
                    self._follow(known, row, tick)
            if point.log_speedup == point.log_speedup and not point.is_baseline:
                rows.append(row)
                ratios.append(-point.log_speedup)
                errors.append(point.se_speedup if point.se_speedup == point.se_speedup else 0.0)
            if point.log_time == point.log_time:
                timed.append(row)
                times.append(point.log_time)
        self._ratios.grow(len(catalog))
        self._levels.grow(np.array([series.device_row for series in catalog.series]), len(catalog.devices))
        if rows:
            self._ratios.push(np.array(rows), np.array(ratios), np.array(errors), tick=tick, day=day)
        devices: set[int] = set()
        if timed:
            devices = {
                int(d) for d in self._levels.push(np.array(timed), np.array(times), tick=tick, day=day)
            }
        return set(rows), devices

    def _follow(self, known: VersionBreak, row: int, tick: int) -> None:
        """Let a series join a break whose change was told: what moves it is known."""
        series = self._catalog.series[row]
        if not known.tells_of(series):
            return
        self._levels.adjust(np.array([row]), series.device_row, tick, known.told_size)
        rows = self._catalog.siblings(row) if series.is_baseline else [row]
        self._restart(rows, [tick] * len(rows))

    def _restart(self, rows: Sequence[int], ticks: Sequence[int]) -> None:
        if rows:
            self._ratios.restart(np.array(rows), np.array(ticks))

    def _changes(self, day: int, rows: Ints, devices: Sequence[int]) -> list[Change]:
        scan = self._scan_rows(rows)
        moved = self._scan_devices(devices)
        tests = {known: self._finder.of_break(known) for known in self._catalog.open_breaks(day)}
        largest = significance(candidate for found in tests.values() for candidate in found)
        breaks = [known for known, found in tests.items() if strongest(found, largest_p_value=largest)]
        told: list[Change] = []
        for _ in range(_MOST_CHANGES):
            if not (scan or moved or breaks):
                break
            candidates = [c for known in breaks if not known.is_told for c in self._finder.of_break(known)]
            candidates += [c for row in scan for c in self._of_row(row, day)]
            candidates += [c for device in moved for c in self._of_device(device)]
            best = strongest(candidates, largest_p_value=largest)
            if best is None:
                break
            change = self._tell(best, day)
            skipped = best.break_ is not None and best.break_.skipped(best.tick_by_row, best.size)
            if not best.is_known and not skipped:
                told.append(change)
            scan = self._scan_rows(np.array(scan, dtype=np.int64))
            moved = self._scan_devices(moved)
        return told

    def _scan_rows(self, rows: Ints) -> list[int]:
        if not len(rows):
            return []
        scan = self._ratios.scan(rows)
        strong = np.maximum(np.abs(scan.step), np.abs(scan.drift)) >= SCAN
        return [int(row) for row in rows[strong]]

    def _scan_devices(self, devices: Sequence[int]) -> list[int]:
        if not devices:
            return []
        steps = self._levels.scan(np.array(devices))
        strong = (np.abs(steps.z) >= SCAN_DEVICE) & (np.abs(steps.size) >= LEAST_DEVICE_STEP)
        return [device for device, is_strong in zip(devices, strong, strict=True) if is_strong]

    def _of_device(self, device: int) -> list[Candidate]:
        """Return the change of everything on a device, unless only a part of it moved."""
        catalog, levels = self._catalog, self._levels
        steps = levels.scan(np.array([device]))
        size, length = float(steps.size[0]), levels.sessions_since(device, int(steps.length[0]))
        tick = int(levels.ticks[device, -length])
        members = catalog.rows_by_device[device]
        own = levels.own_steps(np.array(members), device, tick)
        own = own[~np.isnan(own)]
        if not len(own) or (np.sign(size) * own >= SHARE_OF_STEP * abs(size)).mean() < TOGETHER:
            return []
        if not self._finder.ratios_stayed(dict.fromkeys(members, tick), size):
            return []
        found = Candidate(
            cause=Cause.DEVICE,
            scope={"device": catalog.devices[device]},
            tick_by_row=dict.fromkeys(members, tick),
            day=self._day_of(tick),
            z=float(steps.z[0]),
            size=size,
            threshold=SCAN_DEVICE,
            is_absolute=True,
        )
        for known in catalog.breaks_of(members[0]):
            apart = int((levels.ticks[device] >= known.tick_by_row[members[0]]).sum()) - length
            if abs(apart) > _NEAR_SESSIONS:
                continue
            if known.is_told and known.told_size * size > 0:
                return [replace(found, is_known=True)]
            if known.cause is Cause.OS and not known.is_told:
                scope = {"os": known.version}
                day = known.day_by_row[members[0]]
                return [replace(found, cause=Cause.OS, scope=scope, day=day, break_=known)]
        return [found]

    def _day_of(self, tick: int) -> int:
        return self._days[tick]

    def _of_row(self, row: int, day: int) -> list[Candidate]:
        """Return the changes that the scan of one series may show: its own, its baseline's, its device's."""
        ratios = self._ratios
        scan = ratios.scan(np.array([row]))
        step, drift = float(scan.step[0]), float(scan.drift[0])
        length = int(scan.step_length[0])
        is_drift = abs(drift) >= abs(step) - (_DRIFT_BONUS if length >= _SLOW_STEP else -_STEP_BONUS)
        z = drift if is_drift else step
        if abs(z) < SCAN:
            return []
        direction, since = self._drift.get(row, (0.0, -_DRIFT_DAYS))
        if day - since < _DRIFT_DAYS and z * direction > 0 and (is_drift or length >= _SLOW_STEP):
            return []
        length = int(scan.drift_length[0]) if is_drift else ratios.first_session(row, length)
        tick = int(ratios.ticks[row, -length])
        contrast = ratios.contrast(np.array([row]), np.array([tick]))
        size = float(contrast.size[0])
        if is_drift:
            newest = ratios.contrast(np.array([row]), np.array([ratios.ticks[row, -max(length // 4, 3)]]))
            size = float(newest.size[0])
        found = Candidate(
            cause=Cause.DRIFT if is_drift else Cause.DEVICE,
            scope={},
            tick_by_row={row: tick},
            day=self._day_of(tick),
            z=z,
            size=size,
            threshold=SCAN,
        )
        if is_drift:
            return [replace(found, is_known=self._is_told(row, tick, found.size, length))]
        return [self._explained(candidate, length) for candidate in self._wider(found, row, tick)]

    def _wider(self, found: Candidate, row: int, tick: int) -> list[Candidate]:
        """Return the change of a series, or that of its baseline or device if the others moved alike."""
        catalog = self._catalog
        baseline = catalog.baseline_of(row)
        device = catalog.series[row].device_row
        members = [r for r in catalog.rows_by_device[device] if not catalog.series[r].is_baseline]
        evidence = self._finder.evidence(dict.fromkeys(members, tick))

        def alike(rows: Sequence[int]) -> bool:
            parts = [evidence[r].size / found.size for r in rows if r in evidence]
            return len(parts) >= 2 and min(parts) >= 0.4 and max(parts) <= 2.5

        group = [row, *catalog.siblings(row)]
        if len({catalog.series[r].group for r in members}) > 1 and alike(members):
            ticks = dict.fromkeys(catalog.rows_by_device[device], tick)
            return [replace(found, scope={"device": catalog.devices[device]}, tick_by_row=ticks)]
        if baseline is None:
            return [found]
        if alike(group) or (len(group) == 1 and self._baseline_moved(row, baseline, tick)):
            return [replace(found, tick_by_row={baseline: tick}, size=-found.size)]
        return [found]

    def _baseline_moved(self, row: int, baseline: int, tick: int) -> bool:
        """Return whether the baseline moved rather than the only series that is compared with it."""
        device = self._catalog.series[row].device_row
        others = [r for r in self._catalog.rows_by_device[device] if r not in (row, baseline)]
        own = self._levels.own_steps(np.array([row, baseline, *others]), device, tick)
        shared = float(np.nanmedian(own[2:])) if len(own) > 2 and not np.isnan(own[2:]).all() else 0.0
        return bool(abs(own[1] - shared) > 2 * abs(own[0] - shared) + LEAST_EFFECT)

    def _explained(self, candidate: Candidate, length: int) -> Candidate:
        """Return a change with the break that happened at the time as its cause."""
        row = next(iter(candidate.tick_by_row))
        rows = self._catalog.siblings(row) if self._catalog.series[row].is_baseline else [row]
        if self._is_told(rows[0], candidate.tick_by_row[row], candidate.size, length):
            return replace(candidate, is_known=True)
        for known in self._catalog.breaks_of(row):
            since = int((self._ratios.ticks[rows[0]] >= known.tick_by_row[row]).sum())
            if not known.is_told and abs(since - length) <= _NEAR_SESSIONS + length // 6:
                ticks = {r: known.tick_by_row.get(r, t) for r, t in candidate.tick_by_row.items()}
                day = known.day_by_row[row]
                return replace(candidate, cause=known.cause, tick_by_row=ticks, day=day, break_=known)
        return candidate

    def _is_told(self, row: int, tick: int, size: float, length: int) -> bool:
        """Return whether a change of a series is a part of one that was told of its version."""
        ticks = self._ratios.ticks[row]
        return any(
            known.is_told
            and known.told_size * size > 0
            and abs(int((ticks >= known.tick_by_row[row]).sum()) - length) <= _NEAR_SESSIONS + length // 3
            for known in self._catalog.breaks_of(row)
        )

    def _tell(self, candidate: Candidate, day: int) -> Change:
        """Begin new levels where a change is, and return it."""
        catalog = self._catalog
        if candidate.break_ is not None:
            candidate.break_.told_scope = candidate.scope
            candidate.break_.told_size = candidate.size
        for row, tick in candidate.tick_by_row.items():
            series = catalog.series[row]
            if candidate.cause is Cause.DRIFT:
                self._drift[row] = (candidate.size, day)
                tick = int(self._ratios.ticks[row, -_KEPT_OF_DRIFT])
            if not candidate.is_absolute:
                rows = catalog.siblings(row) if series.is_baseline else [row]
                self._restart(rows, [tick] * len(rows))
                if candidate.cause is not Cause.DRIFT:
                    self._levels.adjust(np.array([row]), series.device_row, tick, candidate.size)
        if candidate.is_absolute:
            by_device: dict[int, list[int]] = {}
            for row in candidate.tick_by_row:
                by_device.setdefault(catalog.series[row].device_row, []).append(row)
            for device, rows in by_device.items():
                tick = min(candidate.tick_by_row[row] for row in rows)
                self._levels.adjust(np.array(rows), device, tick, candidate.size)
        names = sorted(catalog.series[row].name for row in candidate.tick_by_row)
        is_one = len(names) == 1
        return Change(
            series=names[0] if is_one else None,
            scope={} if is_one else dict(candidate.scope),
            day=candidate.day,
            delta=candidate.size,
            cause=candidate.cause,
            told=day,
            z=candidate.z,
            evidence=names,
            se=_standard_error(candidate),
            version=None if candidate.break_ is None else candidate.break_.version,
        )


def _standard_error(candidate: Candidate) -> float:
    """Return the standard error of the size of a change."""
    if candidate.precision > 0:
        return math.sqrt(1.0 / candidate.precision)
    return abs(candidate.size / candidate.z)


def _waves(points: Sequence[Point]) -> list[list[Point]]:
    """Split the points of a day so that each series is at most once in each part."""
    waves: list[list[Point]] = []
    seen: dict[str, int] = {}
    for point in points:
        place = seen[point.series] = seen.get(point.series, -1) + 1
        if place == len(waves):
            waves.append([])
        waves[place].append(point)
    return waves
