"""Scans of ratios: a step or a drift of one series, or of a group of series."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from farm.core.results.history.changes.breaks import Catalog
from farm.core.results.history.changes.choice import Candidate
from farm.core.results.history.changes.device_level.beside_level import is_in_ratio
from farm.core.results.history.changes.device_level.levels import DeviceLevels
from farm.core.results.history.changes.differences import Difference, contrasts, pooled
from farm.core.results.history.changes.planned.conditions import SHARE_OF_STEP, TOGETHER, fits_as_well
from farm.core.results.history.changes.planned.planned_tests import PlannedTests
from farm.core.results.history.changes.points import BASELINE, Cause
from farm.core.results.history.changes.ratios import RatioHistory, Scan
from farm.core.results.history.changes.scans.device_scans import NEAR_SESSIONS
from farm.core.results.history.changes.scans.groups import (
    Group,
    group_history,
    group_scores,
    groups_of,
    moved_baselines,
    own_steps,
)
from farm.core.results.history.changes.scans.told import Told

#: Least scores of a scan: so high, because each session of each series or device is a look.
SCAN = 4.7
#: Of series that share a baseline: one session of it moves all of them.
SCAN_BASELINE = 5.2
#: A step that takes so many sessions to be found is more probably a drift.
_SLOW_STEP = 8
#: Least scores of a ratio, of its scan and of its change, whose score is high without its baseline's noise.
_RATIO_SEEMS, _RATIO_MOVED = 2.5, 2.0
#: The other series of a group move by such a score, and by this share of the one that was found.
_OTHERS_SCORE = 2.5
_OTHERS_SHARE = 0.5
#: Others that move with what was found, with such a score, may have moved for the same reason.
_BESIDE_SCORE = 1.0


class RatioScans:
    """Scans the ratios of series, and of groups of them, for steps and drifts."""

    def __init__(
        self, catalog: Catalog, ratios: RatioHistory, levels: DeviceLevels, planned: PlannedTests, told: Told
    ) -> None:
        self._catalog = catalog
        self._ratios = ratios
        self._levels = levels
        self._planned = planned
        self._ratio_evidence = planned.evidence
        self._told = told

    def strong_rows(self, rows: Sequence[int]) -> list[int]:
        """Return the series that moved by themselves."""
        if not rows:
            return []
        scores = dict(zip(rows, self._ratios.scan(np.array(rows)).strongest, strict=True))
        seeming = [row for row, score in scores.items() if _RATIO_SEEMS <= score < SCAN]
        if seeming:
            steady = self._planned.beside_level.without_baseline_noise(seeming).scan(np.arange(len(seeming)))
            scores.update(zip(seeming, steady.strongest, strict=True))
        return [row for row, score in scores.items() if score >= SCAN]

    def strong_groups(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups that may have moved."""
        if not groups:
            return []
        strong = group_scores(self._catalog, self._ratios, groups) >= SCAN
        return [group for group, is_strong in zip(groups, strong, strict=True) if is_strong]

    def of_row(self, row: int) -> list[Candidate]:
        """Return the changes that the scan of one series may show: its own, or that of a group."""
        scan = self._ratios.scan(np.array([row]))
        if scan.strongest[0] >= SCAN:
            found = self._scanned(self._ratios, scan, 0, row, [row])
        else:
            found = self._without_baseline_noise(row)
        wider = None if found is None else self._wider(found, row)
        return [] if wider is None else [wider]

    def _without_baseline_noise(self, row: int) -> Candidate | None:
        """Return what a ratio shows without the noise of its baseline, if it seems to move itself, too."""
        steady = self._planned.beside_level.without_baseline_noise([row])
        found = self._scanned(steady, steady.scan(np.array([0])), 0, 0, [row])
        evidence = self._evidence(found, [row]) if found else {}
        if found is None or row not in evidence:
            return None
        own = pooled([evidence[row]])
        moved = own.z * np.sign(found.size) >= _RATIO_MOVED and is_in_ratio(own.size, found.size)
        return found if moved else None

    def of_groups(self, groups: Sequence[Group]) -> list[Candidate]:
        """Return the changes of these groups of which nearly all series moved."""
        if not groups:
            return []
        history = group_history(self._catalog, self._ratios, groups)
        scan = history.scan(np.arange(len(groups)))
        candidates = []
        for at, group in enumerate(groups):
            found = self._scanned(history, scan, at, at, group.rows)
            least = SCAN if group.baseline is None else SCAN_BASELINE
            if found is None or abs(found.z) < least or not self._moved_alike(found, group.rows):
                continue
            if not self._may_be_part(found, group.rows, groups_of(self._catalog, group.rows)):
                candidates.append(self._of_group(found, group))
        return candidates

    def _scanned(
        self, history: RatioHistory, scan: Scan, place: int, at: int, rows: Sequence[int]
    ) -> Candidate | None:
        """Return the step or the drift that a row of a history shows; None without one.

        Args:
            history: of series, or of groups.
            scan: of it.
            place: in the scan.
            at: row of the history.
            rows: the series that it stands for.
        """
        step, drift = float(scan.step[place]), float(scan.drift[place])
        length = int(scan.step_length[place])
        is_drift = abs(drift) >= abs(step)
        z = drift if is_drift else step
        if abs(z) < SCAN:
            return None
        is_slow = is_drift or length >= _SLOW_STEP
        length = int(scan.drift_length[place]) if is_drift else history.first_session(at, length)
        z *= self._planned.beside_level.share_of_score(history, at, rows, length, is_drift=is_drift)
        if abs(z) < SCAN:
            return None
        tick = int(history.ticks[at, -length])
        day = self._told.day_by_tick[tick]
        if self._moves_on(rows, z, day, is_slow=is_slow):
            return None
        newest = int(history.ticks[at, -_newest(length)]) if is_drift else tick
        return Candidate(
            cause=Cause.DRIFT if is_drift else Cause.DEVICE,
            scope={},
            tick_by_row=dict.fromkeys(rows, tick),
            day=day,
            z=z,
            size=contrasts(history, {at: newest})[at].size,
            threshold=SCAN,
            sessions=length,
        )

    def _moves_on(self, rows: Sequence[int], z: float, day: int, *, is_slow: bool) -> bool:
        """Return whether half of these series were told to move in this direction until shortly before a day.

        A step may follow a step, but not a drift: on its way, a drift is a step beside its beginning.
        """
        told = [self._told.moved_by_row[row] for row in rows if row in self._told.moved_by_row]
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
        return self._ratio_evidence.of(ticks)

    def _may_be_part(self, found: Candidate, rows: Sequence[int], groups: Sequence[Group]) -> bool:
        """Return whether the rest of a group seems to move, too: its change may be found soon."""
        return any(
            self._moves_beside(found, rows, [row for row in group.rows if row not in rows])
            for group in groups
            if set(rows) < set(group.rows)
        )

    def _moves_beside(self, found: Candidate, rows: Sequence[int], others: Sequence[int]) -> bool:
        """Return whether others seem to move with these series."""
        tick = next(iter(found.tick_by_row.values()))
        evidence = self._ratio_evidence.of(dict.fromkeys([*rows, *others], tick))
        own, beside = ({r: evidence[r] for r in part if r in evidence} for part in (rows, others))
        if not own or not beside:
            return False
        moved, rest = (pooled(self._ratio_evidence.by_baseline(part)) for part in (own, beside))
        share = rest.shift / moved.shift if moved.shift else 0.0
        return rest.z * moved.z > 0 and abs(rest.z) >= _BESIDE_SCORE and share >= _OTHERS_SHARE

    def _wider(self, found: Candidate, row: int) -> Candidate | None:
        """Return the change of a group if its other series moved with the one that was found.

        None where it cannot be said yet whether it is the series that moved, its baseline, or more.
        """
        catalog = self._catalog
        tick = found.tick_by_row[row]
        series = catalog.series[row]
        members = [r for r in catalog.rows_by_device[series.device_row] if not catalog.series[r].is_baseline]
        groups = [group for group in groups_of(catalog, members) if row in group.rows]
        evidence = self._ratio_evidence.of({r: tick for group in groups for r in group.rows} | {row: tick})
        if row not in evidence:
            return found
        for group in sorted(groups, key=lambda group: len(group.rows), reverse=True):
            others = {r: evidence[r] for r in group.rows if r != row and r in evidence}
            if not others or not self._moved_alike(found, group.rows):
                continue
            rest = pooled(self._ratio_evidence.by_baseline(others))
            if rest.z * np.sign(found.size) >= _OTHERS_SCORE and (
                rest.shift / evidence[row].shift >= _OTHERS_SHARE
            ):
                if self._may_be_part(found, group.rows, groups_of(catalog, group.rows)):
                    return None
                wider = replace(found, tick_by_row=dict.fromkeys(group.rows, tick))
                return self._of_group(wider, group)
        if self._may_be_part(found, [row], groups):
            return None
        baseline = catalog.baseline_of(row)
        if baseline is not None and len(catalog.rows_by_group[series.group]) == 2:
            own = own_steps(catalog, self._levels, [row], baseline, tick, newest=_newest_of(found))
            if abs(own[1]) > abs(own[0]):
                found = replace(found, tick_by_row={baseline: tick}, size=-found.size)
        return self._explained(found, [row])

    def _of_group(self, found: Candidate, group: Group) -> Candidate:
        """Return the change of a group, as large as its series show it: of its baselines, if they moved."""
        mean = pooled(self._ratio_evidence.by_baseline(self._evidence(found, group.rows)))
        found = replace(found, size=mean.size, precision=mean.precision)
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
            is_near = abs(since - length) <= NEAR_SESSIONS + length // 6
            if not known.is_told and is_near and self._fits(known.tick_by_row[row], rows, candidate):
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
            # Of a change that moved no ratio, no drift of one is left over.
            and (known.is_of_ratios or candidate.cause is not Cause.DRIFT)
            and abs(int((ticks >= known.tick_by_row[row]).sum()) - length) <= NEAR_SESSIONS + length // 3
            and self._fits(known.tick_by_row[row], [measured], candidate)
            for known in self._catalog.breaks_of([row])
        )

    def _fits(self, tick: int, rows: Sequence[int], candidate: Candidate) -> bool:
        """Return whether a step at a session explains these series nearly as well as what was found."""
        at_session = self._ratio_evidence.of(dict.fromkeys(rows, tick))
        at_found = self._evidence(candidate, rows)
        if not at_session or not at_found:
            return False
        z, best = (pooled(self._ratio_evidence.by_baseline(part)).z for part in (at_session, at_found))
        return fits_as_well(z, best)


def _newest_of(found: Candidate) -> int | None:
    """Return how many of the latest sessions show what was found; None for the first ones since."""
    return _newest(found.sessions) if found.cause is Cause.DRIFT else None


def _newest(length: int) -> int:
    """Return how many of the sessions of a drift show what it has come to."""
    return max(length // 4, 3)
