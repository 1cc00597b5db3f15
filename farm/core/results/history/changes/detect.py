"""Detection of changes, session by session: points in, changes out; it never looks ahead."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

import numpy as np

from farm.core.results.history.changes.breaks import Catalog, VersionBreak
from farm.core.results.history.changes.choice import Candidate, Moved, significance, strongest
from farm.core.results.history.changes.device_level.levels import DeviceLevels
from farm.core.results.history.changes.planned.planned_tests import PlannedTests
from farm.core.results.history.changes.points import Cause, Change, Point
from farm.core.results.history.changes.ratios import RatioHistory
from farm.core.results.history.changes.scans.device_scans import DeviceScans
from farm.core.results.history.changes.scans.groups import groups_of
from farm.core.results.history.changes.scans.ratio_scans import RatioScans
from farm.core.results.history.changes.scans.told import Told

#: After a drift was told, so many sessions are the new reference.
_KEPT_OF_DRIFT = 5
#: A session tells at most so many changes.
_MOST_CHANGES = 500


def detect(points: Iterable[Point]) -> list[Change]:
    """Return the changes in a history of points, in the order in which they are told.

    A session's changes follow from it and those that began before alone. The order of the points does not
    matter, and a point that is there twice counts once.
    """
    ordered = sorted(
        set(points), key=lambda point: (point.day, point.time, point.series, point.session, point)
    )
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
        self._planned = PlannedTests(self._catalog, self._ratios, self._levels)
        self._told = Told()
        self._device_scans = DeviceScans(self._catalog, self._levels, self._planned, self._told)
        self._ratio_scans = RatioScans(self._catalog, self._ratios, self._levels, self._planned, self._told)
        self._tick = 0
        self._day: int | None = None

    def add_day(self, day: int, points: Sequence[Point]) -> list[Change]:
        """Add all points of a day, in order of time; return the changes that can be told now.

        Raises:
            ValueError: the day is not later than the one before.
        """
        if self._day is not None and day <= self._day:
            raise ValueError(f"day {day} is not later than day {self._day}")
        self._day = day
        told: list[Change] = []
        for number, wave in enumerate(_waves(points)):
            rows, devices = self._push(day, wave)
            measured = {self._catalog.row(point) for point in wave}
            if number == 0:
                self._ratios.pool()
            told += self._changes(day, sorted(rows), sorted(devices), measured)
        return told

    def _push(self, day: int, wave: Sequence[Point]) -> tuple[set[int], set[int]]:
        self._tick += 1
        self._told.day_by_tick.append(day)
        tick, catalog = self._tick, self._catalog
        rows, ratios, errors, timed, times = [], [], [], [], []
        renewed: set[int] = set()
        for point in wave:
            row = catalog.row(point)
            for known in catalog.observe(row, point, tick):
                self._follow(known, row, tick)
                renewed.update(catalog.siblings(row) if point.is_baseline else [row])
            if point.log_speedup == point.log_speedup and not point.is_baseline:
                rows.append(row)
                ratios.append(-point.log_speedup)
                errors.append(point.se_speedup if point.se_speedup == point.se_speedup else 0.0)
            if point.log_time == point.log_time:
                timed.append(row)
                times.append(point.log_time)
        self._ratios.grow(len(catalog))
        self._levels.grow(np.array([series.device_row for series in catalog.series]), len(catalog.devices))
        if renewed:
            self._ratios.begin_version(np.array(sorted(renewed)), tick)
        if rows:
            self._ratios.push(np.array(rows), np.array(ratios), np.array(errors), tick=tick, day=day)
        devices: set[int] = set()
        if timed:
            devices = {
                int(d) for d in self._levels.push(np.array(timed), np.array(times), tick=tick, day=day)
            }
        return set(rows), devices

    def _follow(self, known: VersionBreak, row: int, tick: int) -> None:
        """Let a series join the changes that were told of its new version and of those that it skipped."""
        series = self._catalog.series[row]
        size = known.size_for(series)
        if not size:
            return
        self._levels.adjust(np.array([row]), series.device_row, tick, size)
        rows = self._catalog.siblings(row) if series.is_baseline else [row]
        self._restart(rows, [tick] * len(rows))

    def _restart(self, rows: Sequence[int], ticks: Sequence[int]) -> None:
        if rows:
            self._ratios.restart(np.array(rows), np.array(ticks))

    def _changes(
        self, day: int, rows: Sequence[int], devices: Sequence[int], measured: Collection[int]
    ) -> list[Change]:
        """Return what the newest sessions tell: of ratios, of levels, and of versions that they have."""
        scans, of_devices = self._ratio_scans, self._device_scans
        strong, moved = scans.strong_rows(rows), of_devices.strong(devices)
        groups = scans.strong_groups(groups_of(self._catalog, rows))
        tests = {
            known: self._planned.of_break(known)
            for known in self._catalog.open_breaks(day)
            if not known.tick_by_row.keys().isdisjoint(measured)
        }
        stands = significance(candidate for found in tests.values() for candidate in found)
        breaks = [known for known, found in tests.items() if strongest(found, stands=stands)]
        told: list[Change] = []
        for _ in range(_MOST_CHANGES):
            if not (strong or moved or groups or breaks):
                break
            candidates = [c for known in breaks if not known.is_told for c in self._planned.of_break(known)]
            candidates += scans.of_groups(groups)
            candidates += [c for row in strong for c in scans.of_row(row)]
            candidates += [c for device, shift in moved.items() for c in of_devices.candidates(device, shift)]
            best = strongest(candidates, stands=stands)
            if best is None:
                break
            change = self._tell(best, day)
            skipped = best.break_ is not None and best.break_.skipped(best.tick_by_row, best.size)
            if not best.is_known and not skipped:
                told.append(change)
            strong, moved = scans.strong_rows(strong), of_devices.strong(list(moved))
            groups = scans.strong_groups(groups)
        return told

    def _tell(self, candidate: Candidate, day: int) -> Change:
        """Begin new levels where a change is, and return it."""
        catalog = self._catalog
        if candidate.break_ is not None:
            candidate.break_.told_scope = candidate.scope
            candidate.break_.told_size = candidate.size
            candidate.break_.is_of_ratios = not candidate.is_absolute
        by_device: dict[int, list[int]] = {}
        for row, tick in candidate.tick_by_row.items():
            by_device.setdefault(catalog.series[row].device_row, []).append(row)
            self._told.changed_by_row[row] = (candidate.size, tick)
            if not candidate.is_absolute:
                self._begin_level(row, tick, candidate, day)
        is_drift = candidate.cause is Cause.DRIFT
        for device, rows in by_device.items():
            if is_drift and candidate.is_absolute:
                self._told.drift_by_device[device] = Moved(candidate.size, day, is_drift)
            if candidate.is_absolute or not is_drift:
                tick = min(candidate.tick_by_row[row] for row in rows)
                self._levels.adjust(np.array(rows), device, tick, candidate.size, is_drift=is_drift)
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

    def _begin_level(self, row: int, tick: int, candidate: Candidate, day: int) -> None:
        """Begin a new level of the ratios in which a change of a series shows."""
        is_baseline = self._catalog.series[row].is_baseline
        for measured in self._catalog.siblings(row) if is_baseline else [row]:
            first = tick
            if candidate.break_ is None:
                size = -candidate.size if is_baseline else candidate.size
                self._told.moved_by_row[measured] = Moved(size, day, candidate.cause is Cause.DRIFT)
            if candidate.cause is Cause.DRIFT:
                first = int(self._ratios.ticks[measured, -_KEPT_OF_DRIFT])
            self._ratios.restart(np.array([measured]), np.array([first]))


def _standard_error(candidate: Candidate) -> float:
    """Return the standard error of the size of a change."""
    if candidate.precision > 0:
        return math.sqrt(1.0 / candidate.precision)
    return abs(candidate.size / candidate.z)


def _waves(points: Sequence[Point]) -> list[list[Point]]:
    """Split the points of a day, in order of time, into sessions: what devices measured in one matrix.

    On each device, sessions are in the order of their first points. So the part of a device is apart from
    those of the others where it measured another session in between. A session that begins later changes none
    that began before.
    """
    parts: dict[tuple[str, int, str], list[Point]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for point in points:
        again = seen[point.series, point.session]
        seen[point.series, point.session] += 1
        parts.setdefault((point.session, again, point.device), []).append(point)
    waves: list[list[Point]] = []
    wave_by_session: dict[tuple[str, int], int] = {}
    latest_by_device: dict[str, int] = {}
    for (session, again, device), measured in parts.items():
        wave = wave_by_session.get((session, again), -1)
        if wave <= latest_by_device.get(device, -1):
            wave = wave_by_session[session, again] = len(waves)
            waves.append([])
        waves[wave] += measured
        latest_by_device[device] = wave
    return waves
