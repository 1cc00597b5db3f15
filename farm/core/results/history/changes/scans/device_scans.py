"""Scans of the levels of devices: a step or a drift of everything on a device."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from farm.core.results.history.changes.breaks import Catalog
from farm.core.results.history.changes.choice import Candidate
from farm.core.results.history.changes.device_level.levels import LATEST_OF_DRIFT, DeviceLevels
from farm.core.results.history.changes.device_level.wander import Shift
from farm.core.results.history.changes.differences import pooled
from farm.core.results.history.changes.planned.conditions import SHARE_OF_STEP, TOGETHER, fits_as_well
from farm.core.results.history.changes.planned.planned_tests import PlannedTests
from farm.core.results.history.changes.planned.scopes import version_scope
from farm.core.results.history.changes.points import Cause
from farm.core.results.history.changes.scans.told import Told

#: Least score of a step of a device, of which each session compares 24.
SCAN_DEVICE = 5.2
#: Of a drift of a device, and of a step long ago, which a level that wanders far and slowly resembles.
SCAN_DEVICE_SLOW = 7.0
LEAST_DEVICE_STEP = 0.025
#: Levels age by some percent a year.
LEAST_DEVICE_SLOW = 0.04
#: A break explains a step within so many sessions of it.
NEAR_SESSIONS = 3
#: A program that is new is tested for so many sessions before a device is blamed.
_PROGRAM_SESSIONS = 5


class DeviceScans:
    """Scans the levels of the farm's devices for steps and drifts."""

    def __init__(self, catalog: Catalog, levels: DeviceLevels, planned: PlannedTests, told: Told) -> None:
        self._catalog = catalog
        self._levels = levels
        self._planned = planned
        self._told = told

    def strong(self, devices: Sequence[int]) -> dict[int, Shift]:
        """Return the devices whose level moved, each with how it did."""
        if not devices:
            return {}
        shifts = zip(devices, self._levels.scan(np.array(devices)), strict=True)
        return {device: shift for device, shift in shifts if _is_strong(shift)}

    def candidates(self, device: int, shift: Shift) -> list[Candidate]:
        """Return the change of everything on a device, unless only a part of it moved."""
        catalog, levels = self._catalog, self._levels
        size, length = shift.size, shift.length
        tick = int(levels.ticks[device, -length])
        drift = self._told.drift_by_device.get(device)
        if drift and drift.may_go_on(size, self._told.day_by_tick[tick], is_step=not shift.is_drift):
            return []
        members = catalog.rows_by_device[device]
        newest = LATEST_OF_DRIFT if shift.is_slow else None
        own = levels.own_steps(np.array(members), device, tick, newest=newest)
        is_known = ~np.isnan(own)
        moved = np.sign(size) * own >= SHARE_OF_STEP * abs(size)
        # What was told of a part of the series moves the level of their device, too.
        moved &= ~np.array([self._is_told_at(row, device, tick, size) for row in members])
        ticks = dict.fromkeys(members, tick)
        is_all = is_known.any() and moved[is_known].mean() >= TOGETHER
        if not is_all or not self._planned.evidence.stayed(ticks, size):
            return []
        # What a room does ends within days.
        if not shift.is_slow and self._planned.of_levels.others_moved(
            {device: tick}, size, self._told.day_by_tick[tick]
        ):
            return []
        found = Candidate(
            cause=Cause.DRIFT if shift.is_drift else Cause.DEVICE,
            scope={"device": catalog.devices[device]},
            tick_by_row=ticks,
            day=self._told.day_by_tick[tick],
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
            since = levels.sessions_since(device, known.tick_by_row[first])
            if abs(since - length) > NEAR_SESSIONS or not self._level_fits(
                device, known.tick_by_row[first], tick
            ):
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

    def _level_fits(self, device: int, tick: int, found: int) -> bool:
        """Return whether a step of a level at a session explains it nearly as well as one that was found."""
        members, none = np.array(self._catalog.rows_by_device[device]), np.zeros(0, dtype=np.int64)
        z, best = (
            pooled([self._levels.planned(device, at, members, none, counts_absence=False)]).z
            for at in (tick, found)
        )
        return fits_as_well(z, best)

    def _is_told_at(self, row: int, device: int, tick: int, size: float) -> bool:
        """Return whether a change of a series was told that began at about a session, or that goes on."""
        known, first = self._told.changed_by_row.get(row, (0.0, 0))
        if known * size > 0:
            since = self._levels.sessions_since
            return abs(since(device, first) - since(device, tick)) <= NEAR_SESSIONS
        moved = self._told.moved_by_row.get(row)
        return moved is not None and moved.is_drift and moved.may_go_on(size, self._told.day_by_tick[tick])


def _is_strong(shift: Shift) -> bool:
    """Return whether a step or a drift of a device is large and sure enough to be told."""
    if shift.is_slow:
        return abs(shift.z) >= SCAN_DEVICE_SLOW and abs(shift.size) >= LEAST_DEVICE_SLOW
    return abs(shift.z) >= SCAN_DEVICE and abs(shift.size) >= LEAST_DEVICE_STEP
