"""Planned tests of absolute times: whether everything with a new version moved together."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from farm.core.results.history.changes.breaks import Catalog, VersionBreak
from farm.core.results.history.changes.choice import Candidate
from farm.core.results.history.changes.device_level.levels import DeviceLevels
from farm.core.results.history.changes.differences import Difference, Pooled, is_sure, pooled
from farm.core.results.history.changes.noise import Floats
from farm.core.results.history.changes.planned.conditions import (
    LEAST_AFTER,
    MOST_AFTER,
    PLANNED,
    PLANNED_ABSOLUTE,
    PLANNED_NARROW,
    SHARE_OF_STEP,
    TOGETHER,
    are_most_fresh,
    begins_elsewhere,
)
from farm.core.results.history.changes.planned.ratio_evidence import RatioEvidence
from farm.core.results.history.changes.planned.scopes import is_alone, version_scope
from farm.core.results.history.changes.points import Cause

#: A room that is hot for a day moves all times by less than that. Of several devices, a smaller step is told
#: after so many sessions, if the latest ones still have this share of it.
_MOST_OF_A_DAY, _LEAST_AFTER_OF_ROOM, _LATEST_OF_ROOM, _SHARE_OF_ROOM = 0.075, 4, 2, 0.5
#: Devices with a version from so many days before say nothing of the room.
_ROOM_DAYS = 7


class LevelTests:
    """Tests open breaks with the levels of the farm's devices."""

    def __init__(self, catalog: Catalog, levels: DeviceLevels, evidence: RatioEvidence) -> None:
        self._catalog = catalog
        self._levels = levels
        self._evidence = evidence

    def candidates(self, known: VersionBreak, rows: Sequence[int]) -> Iterable[Candidate]:
        """Yield what a break may have done to the times of these series, if they moved together."""
        catalog = self._catalog
        by_device: dict[int, list[int]] = {}
        for row in rows:
            by_device.setdefault(catalog.series[row].device_row, []).append(row)
        ticks = _first_ticks(known, by_device)
        afters = {device: self._levels.sessions_since(device, tick) for device, tick in ticks.items()}
        if not are_most_fresh(afters.values()):
            return
        fresh = [device for device, after in afters.items() if after <= MOST_AFTER]
        known_parts = (
            (device, self._part(known, device, by_device[device], ticks[device])) for device in fresh
        )
        parts = {device: part for device, part in known_parts if part.after}
        if not parts:
            return
        may_be_outlier = len(rows) == 1 and not is_alone(catalog, rows)
        latest = max(part.after for part in parts.values())
        if latest < LEAST_AFTER and (may_be_outlier or not is_sure([p.size for p in parts.values()])):
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
            if len(fresh) < len(by_device):
                # What is left of it is a part.
                least = PLANNED_NARROW
            yield from self._of_devices(known, version, changed, mean, least, latest=latest)
        if len(parts) > 1 and known.cause is Cause.OS:
            for (device, part), steps in zip(parts.items(), own, strict=True):
                alone = pooled([part])
                if part.after > LEAST_AFTER and _move_alike(_beside_others(steps, alone.size), alone.size):
                    scope = {**version, "device": catalog.devices[device]}
                    members = {device: by_device[device]}
                    yield from self._of_devices(
                        known, scope, members, alone, PLANNED_NARROW, latest=latest, is_part=True
                    )

    def _of_devices(
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
        if not self._evidence.stayed(changed, mean.size):
            return
        if abs(mean.z) >= least and (
            self._may_be_room(known, by_device, mean.size, latest) or self._began_elsewhere(known, by_device)
        ):
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

    def _began_elsewhere(self, known: VersionBreak, by_device: Mapping[int, Sequence[int]]) -> bool:
        """Return whether a step at an earlier or a later session explains these levels clearly better."""
        levels, ticks = self._levels, _first_ticks(known, by_device)

        def score(at: Mapping[int, int]) -> float:
            parts = (self._part(known, d, by_device[d], tick, counts_absence=False) for d, tick in at.items())
            return pooled(list(parts)).z

        sessions = {device: levels.ticks[device][-int(levels.sessions[device]) :] for device in ticks}
        return begins_elsewhere(score, sessions, ticks)

    def _part(
        self, known: VersionBreak, device: int, rows: Sequence[int], tick: int, *, counts_absence: bool = True
    ) -> Difference:
        others = [row for row in self._catalog.rows_by_device[device] if row not in known.tick_by_row]
        beside = np.array(others, dtype=np.int64)
        return self._levels.planned(device, tick, np.array(rows), beside, counts_absence=counts_absence)

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


def _move_alike(own: Floats, size: float) -> bool:
    """Return whether most of these steps of series are a share of a step of all of them."""
    return bool(len(own)) and bool((np.sign(size) * own >= SHARE_OF_STEP * abs(size)).mean() >= TOGETHER)


def _beside_others(own: Floats, step: float) -> Floats:
    """Return how far series of a device moved that together moved by a step, beside the middle of them all.

    What the level of the device wanders in between moves them all, and is no difference between them. That is
    not asked of several devices: a room may move those.
    """
    return own - np.median(own) + step if len(own) else own
