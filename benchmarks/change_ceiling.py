"""The chance that a change is found by a test that knows all of it but its size: what detection may reach.

It knows the series, their first sessions and the form of the change, all other changes, the noise of each
series between sessions, and how the level of its device wanders. It has neither hot nor broken sessions. Its
score is that of generalized least squares over all times of a device: where series stayed, they tell the
level, so the paired ratio is a part of it. It has to reach what detection asks of such a change.
"""

import math
from collections.abc import Sequence
from itertools import groupby
from statistics import NormalDist

import numpy as np

from benchmarks.farm_history import Event, Farm, History
from farm.core.results.history.changes.noise import Floats
from farm.core.results.history.changes.planned.conditions import PLANNED, PLANNED_ABSOLUTE
from farm.core.results.history.changes.points import BASELINE, Cause, Point
from farm.core.results.history.changes.scans.ratio_scans import SCAN

#: Sessions of a device that it looks at: before the change, and since all of it.
_BEFORE, _AFTER = 50, 25


def chance_to_find(event: Event, history: History, farm: Farm) -> float:
    """Return the chance that the score of a change reaches what detection asks for."""
    lasting = {cell.name for cell in history.cells}
    by_device: dict[str, list[Point]] = {}
    for point in history.points:
        if point.series in lasting:
            by_device.setdefault(point.device, []).append(point)
    precision = sum(_precision(event, by_device[device], history, farm) for device in _devices(event))
    return NormalDist().cdf(abs(event.delta) * math.sqrt(precision) - _least_score(event))


def _least_score(event: Event) -> float:
    """Return the score that detection asks of such a change."""
    if event.cause in (Cause.DEVICE, Cause.DRIFT):
        return SCAN
    is_absolute = any(name.endswith(f"/{BASELINE}") for name in event.day_by_series)
    if event.cause is Cause.FILE or not is_absolute or len(_devices(event)) == 1:
        return PLANNED
    return PLANNED_ABSOLUTE


def _devices(event: Event) -> set[str]:
    return {name.split("/")[0] for name in event.day_by_series}


def _precision(event: Event, points: Sequence[Point], history: History, farm: Farm) -> float:
    """Return what one device says of the size of a change: one over its variance."""
    window = _around(points, event)
    names, series = np.unique([point.series for point in window], return_inverse=True)
    own, feels = (np.array([of[name] for name in names])[series] for of in (history.noise, history.feels))
    days = np.array([point.day for point in window], dtype=np.float64)
    sessions = np.unique([point.time for point in window], return_inverse=True)[1]
    sessions_apart = np.abs(sessions[:, None] - sessions[None, :])
    covariance = np.outer(feels, feels) * _level(days, history.wander[points[0].device], farm)
    is_same = series[:, None] == series[None, :]
    carried = np.outer(own, own) * farm.ratio_correlation**sessions_apart / _information(farm.tails)
    covariance += np.where(is_same, carried, 0.0)
    within = np.array([0.0 if point.is_baseline else 1.0 / farm.rounds for point in window])
    covariance[np.diag_indices(len(window))] += own**2 * within
    form = np.array([_share(event, point) for point in window])
    levels = np.eye(len(names))[series]
    solved = np.linalg.solve(covariance, np.column_stack([form, levels]))
    crossed = levels.T @ solved[:, 0]
    return float(form @ solved[:, 0] - crossed @ np.linalg.solve(levels.T @ solved[:, 1:], crossed))


def _around(points: Sequence[Point], event: Event) -> list[Point]:
    """Return the points of the sessions before a change of a device, and since all of it, that count."""
    day = min(event.day_by_series[p.series] for p in points if p.series in event.day_by_series)
    sessions = [list(of_session) for _, of_session in groupby(points, key=lambda p: (p.day, p.time))]
    before = sum(of_session[0].day < day for of_session in sessions)
    partly = sum(of_session[0].day < day + event.ramp for of_session in sessions)
    near = sessions[max(before - _BEFORE, 0) : partly + _AFTER]
    return [point for of_session in near for point in of_session]


def _share(event: Event, point: Point) -> float:
    """Return which share of a change a point has."""
    day = event.day_by_series.get(point.series)
    if day is None or point.day < day:
        return 0.0
    return min((point.day - day) / event.ramp, 1.0) if event.ramp else 1.0


def _level(days: Floats, wander: float, farm: Farm) -> Floats:
    """Return the covariance of the level of a device between days, with its standard deviation."""
    covariance: Floats = wander**2 * farm.wander ** np.abs(days[:, None] - days[None, :])
    covariance += farm.walk**2 * (np.minimum(days[:, None], days[None, :]) - days.min())
    return covariance


def _information(tails: float) -> float:
    """Return what a value with Student's t says of its mean, beside a normal one of the same variance."""
    return (tails + 1) * tails / ((tails + 3) * (tails - 2)) if tails else 1.0
