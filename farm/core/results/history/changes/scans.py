"""Candidates for a change that no version announced: of a series, of a group of series, of a device."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from farm.core.results.history.changes.breaks import Catalog
from farm.core.results.history.changes.candidates import SHARE_OF_STEP, TOGETHER, CandidateFinder
from farm.core.results.history.changes.choice import Candidate, Moved
from farm.core.results.history.changes.device_level.beside_level import is_in_ratio
from farm.core.results.history.changes.device_level.levels import LATEST_OF_DRIFT, DeviceLevels
from farm.core.results.history.changes.device_level.wander import Shift
from farm.core.results.history.changes.differences import Difference, contrasts, pooled
from farm.core.results.history.changes.groups import (
    Group,
    group_history,
    group_scores,
    groups_of,
    moved_baselines,
    others_of,
    own_steps,
)
from farm.core.results.history.changes.points import BASELINE, Cause
from farm.core.results.history.changes.ratios import RatioHistory, Scan
from farm.core.results.history.changes.scopes import version_scope

#: Least scores of a scan: so high, because each session of each series or device is a look.
SCAN = 4.7
#: Of series that share a baseline: one session of it moves all of them.
SCAN_BASELINE = 5.2
#: Of a step of a device, of which each session compares 24.
SCAN_DEVICE = 5.2
#: Of a drift of a device, and of a step long ago, which a level that wanders far and slowly resembles.
SCAN_DEVICE_SLOW = 7.0
LEAST_DEVICE_STEP = 0.025
#: Levels age by some percent a year.
LEAST_DEVICE_SLOW = 0.04
#: A step that takes so many sessions to be found is more probably a drift.
_SLOW_STEP = 8
#: A break explains a scan's change within so many sessions of it.
_NEAR_SESSIONS = 3
#: A program that is new is tested for so many sessions before a device is blamed.
_PROGRAM_SESSIONS = 5
#: Least scores of a ratio, of its scan and of its change, whose score is high without its baseline's noise.
_RATIO_SEEMS, _RATIO_MOVED = 2.5, 2.0
#: The other series of a group move by such a score, and by this share of the one that was found.
_OTHERS_SCORE = 2.5
_OTHERS_SHARE = 0.5
#: Others that move with what was found, with such a score, may have moved for the same reason.
_BESIDE_SCORE = 1.0


class ScanFinder:
    """Scans the ratios and levels of the farm for steps and drifts."""

    def __init__(
        self, catalog: Catalog, ratios: RatioHistory, levels: DeviceLevels, finder: CandidateFinder
    ) -> None:
        self._catalog = catalog
        self._ratios = ratios
        self._levels = levels
        self._finder = finder
        self.day_by_tick: list[int] = [0]
        #: By the series in whose ratios it shows: the last change without a version.
        self.moved_by_row: dict[int, Moved] = {}
        #: By device: the last drift of its level.
        self.drift_by_device: dict[int, Moved] = {}
        #: By series: size and tick of the last change of its time.
        self.told_by_row: dict[int, tuple[float, int]] = {}

    def strong_rows(self, rows: Sequence[int]) -> list[int]:
        """Return the series that moved by themselves."""
        if not rows:
            return []
        scores = dict(zip(rows, self._ratios.scan(np.array(rows)).strongest, strict=True))
        seeming = [row for row, score in scores.items() if _RATIO_SEEMS <= score < SCAN]
        if seeming:
            steady = self._finder.beside_level.without_baseline_noise(seeming).scan(np.arange(len(seeming)))
            scores.update(zip(seeming, steady.strongest, strict=True))
        return [row for row, score in scores.items() if score >= SCAN]

    def strong_groups(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups that may have moved."""
        if not groups:
            return []
        strong = group_scores(self._catalog, self._ratios, groups) >= SCAN
        return [group for group, is_strong in zip(groups, strong, strict=True) if is_strong]

    def strong_devices(self, devices: Sequence[int]) -> dict[int, Shift]:
        """Return the devices whose level moved, each with how it did."""
        if not devices:
            return {}
        shifts = zip(devices, self._levels.scan(np.array(devices)), strict=True)
        return {device: shift for device, shift in shifts if _is_strong(shift)}

    def of_device(self, device: int, shift: Shift) -> list[Candidate]:
        """Return the change of everything on a device, unless only a part of it moved."""
        catalog, levels = self._catalog, self._levels
        size, length = shift.size, shift.length
        drift = self.drift_by_device.get(device)
        if drift and drift.may_go_on(size, self.day_by_tick[-1], is_step=not shift.is_drift):
            return []
        tick = int(levels.ticks[device, -length])
        members = catalog.rows_by_device[device]
        newest = LATEST_OF_DRIFT if shift.is_slow else None
        own = levels.own_steps(np.array(members), device, tick, newest=newest)
        is_known = ~np.isnan(own)
        moved = np.sign(size) * own >= SHARE_OF_STEP * abs(size)
        # What was told of a part of the series moves the level of their device, too.
        moved &= ~np.array([self._is_told_at(row, device, tick, size) for row in members])
        ticks = dict.fromkeys(members, tick)
        is_all = is_known.any() and moved[is_known].mean() >= TOGETHER
        if not is_all or not self._finder.ratios_stayed(ticks, size):
            return []
        # What a room does ends within days.
        if not shift.is_slow and self._finder.others_moved({device: tick}, size, self.day_by_tick[tick]):
            return []
        found = Candidate(
            cause=Cause.DRIFT if shift.is_drift else Cause.DEVICE,
            scope={"device": catalog.devices[device]},
            tick_by_row=ticks,
            day=self.day_by_tick[tick],
            z=shift.z,
            size=size,
            threshold=SCAN_DEVICE_SLOW if shift.is_slow else SCAN_DEVICE,
            is_absolute=True,
        )
        if shift.is_drift:
            return [found]
        for known in catalog.breaks_of([row for row, has in zip(members, is_known, strict=True) if has]):
            first = min(
                (row for row in members if row in known.tick_by_row), key=known.tick_by_row.__getitem__
            )
            since = int((levels.ticks[device] >= known.tick_by_row[first]).sum())
            if abs(since - length) > _NEAR_SESSIONS:
                continue
            if known.is_told and known.told_size * size > 0:
                return [replace(found, is_known=True)]
            if known.cause in (Cause.OS, Cause.METHOD) and not known.is_told:
                scope, day = version_scope(catalog, known), known.day_by_row[first]
                if not known.tick_by_row.keys() <= ticks.keys():
                    # The step is that of one device, whatever others got the build.
                    scope |= found.scope
                return [replace(found, cause=known.cause, scope=scope, day=day, break_=known)]
            if known.cause is Cause.PROGRAM and not known.is_told and since < _PROGRAM_SESSIONS:
                return []
        return [found]

    def _is_told_at(self, row: int, device: int, tick: int, size: float) -> bool:
        """Return whether a change of a series was told that began at about a session, or that goes on."""
        known, first = self.told_by_row.get(row, (0.0, 0))
        if known * size > 0:
            ticks, (earlier, later) = self._levels.ticks[device], sorted((first, tick))
            return int(((ticks >= earlier) & (ticks < later)).sum()) <= _NEAR_SESSIONS
        moved = self.moved_by_row.get(row)
        return moved is not None and moved.is_drift and moved.may_go_on(size, self.day_by_tick[-1])

    def of_row(self, row: int, day: int) -> list[Candidate]:
        """Return the changes that the scan of one series may show: its own, or that of a group."""
        scan = self._ratios.scan(np.array([row]))
        if scan.strongest[0] >= SCAN:
            found = self._scanned(self._ratios, scan, 0, row, [row], day)
        else:
            found = self._without_baseline_noise(row, day)
        wider = None if found is None else self._wider(found, row)
        return [] if wider is None else [wider]

    def _without_baseline_noise(self, row: int, day: int) -> Candidate | None:
        """Return what a ratio shows without the noise of its baseline, if it seems to move itself, too."""
        steady = self._finder.beside_level.without_baseline_noise([row])
        found = self._scanned(steady, steady.scan(np.array([0])), 0, 0, [row], day)
        evidence = self._evidence(found, [row]) if found else {}
        if found is None or row not in evidence:
            return None
        own = pooled([evidence[row]])
        moved = own.z * np.sign(found.size) >= _RATIO_MOVED and is_in_ratio(own.size, found.size)
        return found if moved else None

    def of_groups(self, groups: Sequence[Group], day: int) -> list[Candidate]:
        """Return the changes of these groups of which nearly all series moved."""
        if not groups:
            return []
        history = group_history(self._catalog, self._ratios, groups)
        scan = history.scan(np.arange(len(groups)))
        candidates = []
        for at, group in enumerate(groups):
            found = self._scanned(history, scan, at, at, group.rows, day)
            least = SCAN if group.baseline is None else SCAN_BASELINE
            if found is None or abs(found.z) < least or not self._moved_alike(found, group.rows):
                continue
            if not self._moves_beside(found, group.rows, others_of(self._catalog, group)):
                candidates.append(self._of_group(found, group))
        return candidates

    def _scanned(
        self, history: RatioHistory, scan: Scan, place: int, at: int, rows: Sequence[int], day: int
    ) -> Candidate | None:
        """Return the step or the drift that a row of a history shows; None without one.

        Args:
            history: of series, or of groups.
            scan: of it.
            place: in the scan.
            at: row of the history.
            rows: the series that it stands for.
            day: today.
        """
        step, drift = float(scan.step[place]), float(scan.drift[place])
        length = int(scan.step_length[place])
        is_drift = abs(drift) >= abs(step)
        z = drift if is_drift else step
        if abs(z) < SCAN or self._moves_on(rows, z, day, is_slow=is_drift or length >= _SLOW_STEP):
            return None
        length = int(scan.drift_length[place]) if is_drift else history.first_session(at, length)
        z *= self._finder.beside_level.share_of_score(history, at, rows, length, is_drift=is_drift)
        if abs(z) < SCAN:
            return None
        tick = int(history.ticks[at, -length])
        newest = int(history.ticks[at, -_newest(length)]) if is_drift else tick
        return Candidate(
            cause=Cause.DRIFT if is_drift else Cause.DEVICE,
            scope={},
            tick_by_row=dict.fromkeys(rows, tick),
            day=self.day_by_tick[tick],
            z=z,
            size=contrasts(history, {at: newest})[at].size,
            threshold=SCAN,
            sessions=length,
        )

    def _moves_on(self, rows: Sequence[int], z: float, day: int, *, is_slow: bool) -> bool:
        """Return whether half of these series were told to move in this direction not long ago.

        A step may follow a step, but not a drift: on its way, a drift is a step beside its beginning.
        """
        told = [self.moved_by_row[row] for row in rows if row in self.moved_by_row]
        goes_on = [(is_slow or moved.is_drift) and moved.may_go_on(z, day) for moved in told]
        return 2 * sum(goes_on) >= len(rows)

    def _moved_alike(self, found: Candidate, rows: Sequence[int]) -> bool:
        """Return whether nearly all of these series moved by a similar share of what was found."""
        sizes = np.array([part.size for part in self._evidence(found, rows).values()])
        if len(sizes) < 2:
            return False
        middle = float(np.median(sizes))
        alike = (np.sign(found.size) * sizes >= SHARE_OF_STEP * abs(middle)).mean() >= TOGETHER
        return bool(alike and middle * found.size > 0)

    def _evidence(self, found: Candidate, rows: Sequence[int]) -> dict[int, Difference]:
        """Return how far each of these series moved with what was found."""
        ticks = dict.fromkeys(rows, next(iter(found.tick_by_row.values())))
        if found.cause is Cause.DRIFT:
            # Where a drift begins, it is less than the noise.
            ticks = {row: int(self._ratios.ticks[row, -_newest(found.sessions)]) for row in rows}
        return self._finder.evidence(ticks)

    def _moves_beside(self, found: Candidate, rows: Sequence[int], others: Sequence[int]) -> bool:
        """Return whether others seem to move with these series, so that a wider change may be found soon."""
        tick = next(iter(found.tick_by_row.values()))
        evidence = self._finder.evidence(dict.fromkeys([*rows, *others], tick))
        own, beside = ({r: evidence[r] for r in part if r in evidence} for part in (rows, others))
        if not own or not beside:
            return False
        moved, rest = (pooled(self._finder.by_group(part)) for part in (own, beside))
        share = rest.shift / moved.shift if moved.shift else 0.0
        return rest.z * moved.z > 0 and abs(rest.z) >= _BESIDE_SCORE and share >= _OTHERS_SHARE

    def _wider(self, found: Candidate, row: int) -> Candidate | None:
        """Return the change of a group if its other series moved with the one that was found.

        None where it cannot be said yet whether it is the series that moved, or its baseline.
        """
        catalog = self._catalog
        tick = found.tick_by_row[row]
        series = catalog.series[row]
        members = [r for r in catalog.rows_by_device[series.device_row] if not catalog.series[r].is_baseline]
        groups = [group for group in groups_of(catalog, members) if row in group.rows]
        evidence = self._finder.evidence({r: tick for group in groups for r in group.rows} | {row: tick})
        if row not in evidence:
            return found
        for group in groups:
            others = {r: evidence[r] for r in group.rows if r != row and r in evidence}
            if not others or not self._moved_alike(found, group.rows):
                continue
            rest = pooled(self._finder.by_group(others))
            if rest.z * np.sign(found.size) >= _OTHERS_SCORE and (
                rest.shift / evidence[row].shift >= _OTHERS_SHARE
            ):
                wider = replace(found, tick_by_row=dict.fromkeys(group.rows, tick))
                return self._of_group(wider, group)
        if self._moves_beside(found, [row], catalog.siblings(row)):
            return None
        baseline = catalog.baseline_of(row)
        if baseline is not None and len(catalog.rows_by_group[series.group]) == 2:
            own = own_steps(catalog, self._levels, [row], baseline, tick, newest=_newest_of(found))
            if abs(own[1]) > abs(own[0]):
                found = replace(found, tick_by_row={baseline: tick}, size=-found.size)
        return self._explained(found, [row])

    def _of_group(self, found: Candidate, group: Group) -> Candidate:
        """Return the change of a group, as large as its series show it: of its baselines, if they moved."""
        mean = pooled(self._finder.by_group(self._evidence(found, group.rows)))
        found = replace(found, size=mean.size, shift=mean.shift, precision=mean.precision)
        tick = next(iter(found.tick_by_row.values()))
        baselines = moved_baselines(self._catalog, self._levels, group.rows, tick, newest=_newest_of(found))
        if "device" not in group.scope:
            told = [self._is_told(row, row, found) for row in group.rows]
            if 2 * sum(told) > len(told):
                return replace(found, scope=group.scope, is_known=True)
            # What moves one variant everywhere at once is its file, if that is not known.
            is_drift = found.cause is Cause.DRIFT or self._catalog.series[group.rows[0]].file
            found = replace(found, cause=Cause.DRIFT if is_drift else Cause.FILE, scope=group.scope)
            if baselines:
                scope = {"network": group.scope["network"], "variant": BASELINE}
                ticks = dict.fromkeys(baselines, tick)
                return replace(found, scope=scope, tick_by_row=ticks, size=-found.size)
            return found
        if group.baseline is not None and baselines:
            if self._is_told(group.rows[0], group.rows[0], found):
                return replace(found, scope=group.scope, is_known=True)
            moved = replace(found, tick_by_row={group.baseline: tick}, size=-found.size)
            return self._explained(moved, group.rows)
        return self._explained(replace(found, scope=group.scope), group.rows)

    def _explained(self, candidate: Candidate, rows: Sequence[int]) -> Candidate:
        """Return a step with the break that happened at the time as its cause."""
        length = candidate.sessions
        if self._is_told(rows[0], next(iter(candidate.tick_by_row)), candidate):
            return replace(candidate, is_known=True)
        if candidate.cause is Cause.DRIFT:
            return candidate
        for known in self._catalog.breaks_of(candidate.tick_by_row):
            row = next(row for row in candidate.tick_by_row if row in known.tick_by_row)
            since = int((self._ratios.ticks[rows[0]] >= known.tick_by_row[row]).sum())
            if not known.is_told and abs(since - length) <= _NEAR_SESSIONS + length // 6:
                ticks: Mapping[int, int] = {
                    r: known.tick_by_row.get(r, t) for r, t in candidate.tick_by_row.items()
                }
                day = known.day_by_row[row]
                return replace(candidate, cause=known.cause, tick_by_row=ticks, day=day, break_=known)
        return candidate

    def _is_told(self, measured: int, row: int, candidate: Candidate) -> bool:
        """Return whether a change of a series is a part of one that was told of its version."""
        ticks, length = self._ratios.ticks[measured], candidate.sessions
        return any(
            known.is_told
            and known.told_size * candidate.size > 0
            and abs(int((ticks >= known.tick_by_row[row]).sum()) - length) <= _NEAR_SESSIONS + length // 3
            for known in self._catalog.breaks_of([row])
        )


def _is_strong(shift: Shift) -> bool:
    """Return whether a step or a drift of a device is large and sure enough to be told."""
    if shift.is_slow:
        return abs(shift.z) >= SCAN_DEVICE_SLOW and abs(shift.size) >= LEAST_DEVICE_SLOW
    return abs(shift.z) >= SCAN_DEVICE and abs(shift.size) >= LEAST_DEVICE_STEP


def _newest_of(found: Candidate) -> int | None:
    """Return how many of the latest sessions show what was found; None for the first ones since."""
    return _newest(found.sessions) if found.cause is Cause.DRIFT else None


def _newest(length: int) -> int:
    """Return how many of the sessions of a drift show what it has come to."""
    return max(length // 4, 3)
