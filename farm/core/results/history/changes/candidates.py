"""Candidates for a change: the tests that a new version calls for, over all scopes it may have."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from farm.core.results.history.changes.breaks import Catalog, VersionBreak
from farm.core.results.history.changes.choice import Candidate
from farm.core.results.history.changes.device_level.beside_level import BesideLevel
from farm.core.results.history.changes.device_level.levels import DeviceLevels
from farm.core.results.history.changes.differences import (
    FEW_DEGREES,
    Difference,
    Pooled,
    combined,
    contrasts,
    is_sure,
    pooled,
)
from farm.core.results.history.changes.noise import Floats
from farm.core.results.history.changes.points import BASELINE, Cause
from farm.core.results.history.changes.ratios import RatioHistory
from farm.core.results.history.changes.scopes import (
    Scope,
    baseline_scopes,
    is_in_scope,
    scopes_of,
    version_scope,
)

#: Least standard normal scores of planned tests. Several looks are taken, at 2 to 20 sessions.
PLANNED = 3.5
#: In absolute time, of several devices, which one room moves. A scan's step of a device needs it, too.
PLANNED_ABSOLUTE = 3.8
#: Of one series of many that a break concerns, or of a narrower scope: more of them can be found by chance.
PLANNED_NARROW = 4.2
#: Sessions after a break, in at least one series, and in all of them together.
_LEAST_AFTER = 2
_LEAST_AFTER_TOTAL = 3
#: A room that is hot for a day moves all times by less than that. Of several devices, a smaller step is told
#: after so many sessions, if the latest ones still have this share of it.
_MOST_OF_A_DAY, _LEAST_AFTER_OF_ROOM, _LATEST_OF_ROOM, _SHARE_OF_ROOM = 0.075, 4, 2, 0.5
#: Devices with a version from so many days before say nothing of the room.
_ROOM_DAYS = 7
#: With fewer, or so few before, each may be an outlier: only large steps count, with heavy tails.
_FEW = 3
#: Looks end with so many sessions after a break.
_MOST_AFTER = 25
#: Of the series of a scope, so many move where everything moves together.
TOGETHER = 0.75
SHARE_OF_STEP = 0.4
#: Ratios that moved by this share of a step, with such a score, were not moved by what moves everything.
_RATIOS_MOVED = 0.5
_RATIOS_MOVED_SCORE = 2.5


class CandidateFinder:
    """Tests open breaks with the ratios and levels of the farm."""

    def __init__(self, catalog: Catalog, ratios: RatioHistory, levels: DeviceLevels) -> None:
        self._catalog = catalog
        self._ratios = ratios
        self._levels = levels
        self.beside_level = BesideLevel(catalog, ratios, levels)

    def of_break(self, known: VersionBreak) -> list[Candidate]:
        """Return all candidates that a break explains, whether they are significant or not."""
        if self._is_followed(known):
            return []
        found = list(self._in_ratios(known))
        if known.cause is not Cause.FILE:
            found += self._in_levels(known, list(known.tick_by_row))
        else:
            alone = [row for row in known.tick_by_row if not self._has_ratio(row)]
            if alone:
                found += self._in_levels(known, alone)
        return found

    def _is_followed(self, known: VersionBreak) -> bool:
        """Return whether most devices got another version so soon that both cannot be distinguished yet."""
        row_by_device = {self._catalog.series[row].device_row: row for row in known.tick_by_row}
        followed = sum(self._follows(known, row, device) for device, row in row_by_device.items())
        return 2 * followed > len(row_by_device)

    def _follows(self, known: VersionBreak, row: int, device: int) -> bool:
        # A ratio moves with its baseline, too.
        baseline = self._catalog.baseline_of(row)
        measured = [row] if baseline is None or baseline in known.tick_by_row else [row, baseline]
        later = [
            other.tick_by_row[of]
            for of in measured
            for other in self._catalog.breaks_of([of])
            if other.tick_by_row[of] > known.tick_by_row[row]
        ]
        return any(int((self._levels.ticks[device] >= tick).sum()) < _LEAST_AFTER for tick in later)

    def _has_ratio(self, row: int) -> bool:
        if self._catalog.series[row].is_baseline:
            return any(self._ratios.count[other] for other in self._catalog.siblings(row))
        return bool(self._ratios.count[row])

    def evidence(self, tick_by_row: Mapping[int, int], *, is_whole: bool = False) -> dict[int, Difference]:
        """Return the contrast of each row that has sessions before and after."""
        return contrasts(self._ratios, tick_by_row, is_whole=is_whole)

    def by_group(self, evidence: Mapping[int, Difference]) -> list[Difference]:
        """Combine the series of each group, which share the noise of their baseline."""
        rows_by_group: dict[tuple[str, str, str], list[int]] = {}
        for row in evidence:
            rows_by_group.setdefault(self._catalog.series[row].group, []).append(row)
        return [combined([evidence[row] for row in rows]) for rows in rows_by_group.values()]

    def _in_ratios(self, known: VersionBreak) -> Iterable[Candidate]:
        catalog = self._catalog
        changed = {
            row: tick for row, tick in known.tick_by_row.items() if not catalog.series[row].is_baseline
        }
        if known.cause is Cause.FILE:
            baselines = {
                row: tick for row, tick in known.tick_by_row.items() if catalog.series[row].is_baseline
            }
            siblings = {other: tick for row, tick in baselines.items() for other in catalog.siblings(row)}
            evidence = self._fresh(siblings)
            if evidence:
                yield from self._candidates(
                    known, evidence, siblings, is_baseline=True, scopes=scopes_of(catalog, known, evidence)
                )
        evidence = self._fresh(changed)
        if not evidence:
            return
        if known.cause is Cause.FILE:
            evidence = self.beside_level.more_precise(evidence, changed)
        scopes = scopes_of(catalog, known, evidence)
        yield from self._candidates(known, evidence, changed, is_baseline=False, scopes=scopes)
        if known.cause is not Cause.FILE:
            scopes = baseline_scopes(catalog, known, evidence)
            yield from self._candidates(known, evidence, changed, is_baseline=True, scopes=scopes)

    def _fresh(self, tick_by_row: Mapping[int, int]) -> dict[int, Difference]:
        """Return what series show of their new version, if it is new to half of them: else it was tested."""
        evidence = self.evidence(tick_by_row)
        return evidence if _are_most_fresh([part.after for part in evidence.values()]) else {}

    def _candidates(
        self,
        known: VersionBreak,
        evidence: Mapping[int, Difference],
        tick_by_row: Mapping[int, int],
        *,
        is_baseline: bool,
        scopes: Iterable[Scope],
    ) -> Iterable[Candidate]:
        sign = -1.0 if is_baseline else 1.0
        # Series of a scope without sessions that can be compared belong to it, too.
        unknown = tick_by_row.keys() - evidence.keys()
        for place, (scope, rows) in enumerate(scopes):
            is_whole = place == 0 and not (is_baseline and known.cause is not Cause.FILE)
            if min(part.after for part in rows.values()) > _MOST_AFTER:
                continue
            has_one_baseline = len({self._catalog.series[row].group for row in rows}) == 1
            least_sure = 1
            if has_one_baseline and not (is_whole and self._is_alone(rows)):
                least_sure = _LEAST_AFTER
            is_one = len(rows) == 1 or (is_baseline and has_one_baseline)
            mean = self._mean(rows, tick_by_row, is_one=is_one, least_sure=least_sure)
            if mean is None or not self._is_shared(rows, mean):
                continue
            changed = {
                row: tick
                for row, tick in tick_by_row.items()
                if row in rows or (row in unknown and is_in_scope(self._catalog, row, scope))
            }
            if is_baseline:
                changed = {
                    baseline: tick
                    for row, tick in changed.items()
                    if (baseline := self._catalog.baseline_of(row)) is not None
                }
                if not changed:
                    continue
                scope = {**scope, "variant": BASELINE}
            yield Candidate(
                cause=known.cause,
                scope=scope,
                tick_by_row=changed,
                day=min(known.day_by_row.get(row, known.day) for row in changed),
                z=mean.z,
                size=sign * mean.size,
                threshold=PLANNED if is_whole else PLANNED_NARROW,
                break_=known,
                is_planned=True,
                is_part=not is_whole,
                shift=mean.shift,
                precision=mean.precision,
            )

    def _mean(
        self,
        rows: Mapping[int, Difference],
        tick_by_row: Mapping[int, int],
        *,
        is_one: bool,
        least_sure: int,
    ) -> Pooled | None:
        """Return how far the series of a scope moved; None where sessions are too few to tell.

        Args:
            rows: what each showed.
            tick_by_row: of the first session with the version.
            is_one: whether it is one series, or one baseline, that moved.
            least_sure: sessions since, if all moved so far that a few suffice.
        """
        afters = [part.after for part in rows.values()]
        is_early = max(afters) < _LEAST_AFTER + is_one or sum(afters) < _LEAST_AFTER_TOTAL
        if is_early or min(part.before for part in rows.values()) <= _FEW:
            whole = self.evidence({row: tick_by_row[row] for row in rows}, is_whole=True)
            if max(afters) >= least_sure and is_sure([part.size for part in whole.values()]):
                return pooled([replace(part, degrees=FEW_DEGREES) for part in self.by_group(whole)])
        return None if is_early else pooled(self.by_group(rows))

    def _is_shared(self, rows: Mapping[int, Difference], mean: Pooled) -> bool:
        """Return whether the other baselines of a scope moved, too, beside the one that shows most of it."""
        parts = self.by_group(rows)
        if len(parts) < 2:
            return True
        shown = [part.size * mean.size / (part.variance + 1e-6) for part in parts]
        del parts[shown.index(max(shown))]
        rest = pooled(parts)
        most = rest.size * math.copysign(1.0, mean.size) + 1.0 / math.sqrt(rest.precision)
        return most >= SHARE_OF_STEP * abs(mean.size)

    def _is_alone(self, rows: Collection[int]) -> bool:
        """Return whether no other device measures what these series are: none can be compared with them.

        One session of one series or of one baseline may be an outlier, however far it moved.
        """
        slots = {self._catalog.series[row].slot for row in rows}
        return all(row in rows for slot in slots for row in self._catalog.rows_by_slot[slot])

    def ratios_stayed(self, tick_by_row: Mapping[int, int], size: float) -> bool:
        """Return whether the ratios to the baselines stayed, as they do where everything moves by a size."""
        evidence = self.evidence(
            {r: tick for r, tick in tick_by_row.items() if not self._catalog.series[r].is_baseline}
        )
        if not evidence:
            return True
        mean = pooled(self.by_group(evidence))
        return abs(mean.size) < _RATIOS_MOVED * abs(size) or abs(mean.z) < _RATIOS_MOVED_SCORE

    def _in_levels(self, known: VersionBreak, rows: Sequence[int]) -> Iterable[Candidate]:
        """Test whether the absolute times of all series of a break moved together."""
        catalog = self._catalog
        by_device: dict[int, list[int]] = {}
        for row in rows:
            by_device.setdefault(catalog.series[row].device_row, []).append(row)
        ticks = _first_ticks(known, by_device)
        parts = self._level_parts(known, by_device, ticks)
        if not parts:
            return
        may_be_outlier = len(rows) == 1 and not self._is_alone(rows)
        latest = max(part.after for part in parts.values())
        if latest < _LEAST_AFTER and (may_be_outlier or not is_sure([p.size for p in parts.values()])):
            return
        version = version_scope(catalog, known)
        if known.cause is Cause.FILE:
            first = catalog.series[rows[0]]
            version = {"network": first.network, "variant": first.variant}
        mean = pooled(list(parts.values()))
        own = [self._own_steps(by_device[device], device, ticks[device]) for device in parts]
        if len(parts) == 1:
            own = [_beside_others(steps, mean.size) for steps in own]
        changed = {device: by_device[device] for device in parts}
        if _move_alike(np.concatenate(own), mean.size):
            least = PLANNED_ABSOLUTE if len(parts) > 1 else PLANNED
            yield from self._in_level(known, version, changed, mean, least, latest=latest)
        if len(parts) > 1 and known.cause is Cause.OS:
            for (device, part), steps in zip(parts.items(), own, strict=True):
                alone = pooled([part])
                if part.after > _LEAST_AFTER and _move_alike(_beside_others(steps, alone.size), alone.size):
                    scope = {**version, "device": catalog.devices[device]}
                    members = {device: by_device[device]}
                    yield from self._in_level(
                        known, scope, members, alone, PLANNED_NARROW, latest=latest, is_part=True
                    )

    def _level_parts(
        self, known: VersionBreak, by_device: Mapping[int, Sequence[int]], ticks: Mapping[int, int]
    ) -> dict[int, Difference]:
        """Return what the level of each device shows of a version, if it is new to half of them."""
        catalog, levels = self._catalog, self._levels
        afters = {device: int((levels.ticks[device] >= tick).sum()) for device, tick in ticks.items()}
        parts: dict[int, Difference] = {}
        if not _are_most_fresh(afters.values()):
            return parts
        for device, members in by_device.items():
            if afters[device] > _MOST_AFTER:
                continue
            others = [row for row in catalog.rows_by_device[device] if row not in known.tick_by_row]
            part = levels.planned(device, ticks[device], np.array(members), np.array(others, dtype=np.int64))
            if part.after:
                parts[device] = part
        return parts

    def _in_level(
        self,
        known: VersionBreak,
        scope: dict[str, str],
        by_device: Mapping[int, Sequence[int]],
        mean: Pooled,
        least: float,
        *,
        latest: int,
        is_part: bool = False,
    ) -> Iterable[Candidate]:
        """Yield the change of all times of these series, unless ratios moved or the room may have."""
        changed = {row: known.tick_by_row[row] for rows in by_device.values() for row in rows}
        if not self.ratios_stayed(changed, mean.size):
            return
        if abs(mean.z) >= least and self._may_be_room(known, by_device, mean.size, latest):
            return
        yield Candidate(
            cause=known.cause,
            scope=scope,
            tick_by_row=changed,
            day=min(known.day_by_row[row] for row in changed),
            z=mean.z,
            size=mean.size,
            threshold=least,
            is_absolute=True,
            break_=known,
            is_planned=True,
            is_part=is_part,
        )

    def _may_be_room(
        self, known: VersionBreak, by_device: Mapping[int, Sequence[int]], size: float, latest: int
    ) -> bool:
        """Return whether a room may have moved all times of these devices, and not their new version.

        A room is hot for a day or two, or it moves devices that got no version, too.
        """
        if known.cause is Cause.METHOD:
            return False
        ticks = _first_ticks(known, by_device)
        devices = {self._catalog.series[row].device_row for row in known.tick_by_row}
        if len(devices) > 1 and abs(size) < _MOST_OF_A_DAY:
            newest = [
                self._own_steps(rows, d, ticks[d], newest=_LATEST_OF_ROOM) for d, rows in by_device.items()
            ]
            held = [float(np.median(steps)) for steps in newest if len(steps)]
            has_gone = np.mean(held or [0.0]) * np.sign(size) < _SHARE_OF_ROOM * abs(size)
            if has_gone or latest < _LEAST_AFTER_OF_ROOM:
                return True
        return self.others_moved(ticks, size, known.day)

    def others_moved(self, tick_by_device: Mapping[int, int], size: float, day: int) -> bool:
        """Return whether devices without a version since a week before moved half as far: a room moves all.

        It makes nothing half as slow again.
        """
        if is_sure([size]):
            return False
        renewed = self._catalog.devices_with_versions(day - _ROOM_DAYS)
        steps = self._levels.steps_of_others(set(tick_by_device.values()), renewed | tick_by_device.keys())
        return bool(steps) and float(np.mean(steps)) * np.sign(size) >= _SHARE_OF_ROOM * abs(size)

    def _own_steps(self, rows: Sequence[int], device: int, tick: int, *, newest: int | None = None) -> Floats:
        """Return how far series of a device moved, those of which it is known."""
        own = self._levels.own_steps(np.array(rows), device, tick, newest=newest)
        return own[~np.isnan(own)]


def _first_ticks(known: VersionBreak, by_device: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the first session of each device in which any of these series has a version."""
    return {device: min(known.tick_by_row[row] for row in rows) for device, rows in by_device.items()}


def _are_most_fresh(afters: Collection[int]) -> bool:
    """Return whether half of what has a new version has it for few sessions enough that it is tested."""
    return bool(afters) and 2 * sum(after <= _MOST_AFTER for after in afters) >= len(afters)


def _move_alike(own: Floats, size: float) -> bool:
    """Return whether most of these steps of series are a share of a step of all of them."""
    return bool(len(own)) and bool((np.sign(size) * own >= SHARE_OF_STEP * abs(size)).mean() >= TOGETHER)


def _beside_others(own: Floats, step: float) -> Floats:
    """Return how far series of a device moved that together moved by a step, beside the middle of them all.

    What the level of the device wanders in between moves them all, and is no difference between them. That is
    not asked of several devices: a room may move those.
    """
    return own - np.median(own) + step if len(own) else own
