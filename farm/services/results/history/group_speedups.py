"""Speedups over devices that have something in common: each device counts once, with its newest session."""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from statistics import geometric_mean

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.devices.device import DeviceFacts
from farm.core.results.statistics.interval import bounded_exp, log_interval
from farm.services.results.history.session_points import pending_points
from farm.services.results.speedups import candidate_filter, devices_by_id
from farm.store.results.history.points import DevicePoint, newest_of_devices
from farm.store.results.history.trends import PointCell, TrendSeries, cells_of_points, series_by_id
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView

#: Devices of which a group has an interval.
MIN_DEVICES = 3
#: The slots of candidate and baseline.
_Comparison = tuple[int, int]
#: What devices have in common, and whether they are virtual.
_Group = tuple[str | None, bool]


def group_speedups(
    connection: Connection, by: GroupBy, *, model: str | None = None, since: datetime | None = None
) -> list[GroupSpeedupView]:
    """Return the speedup of each comparison over the devices of each group.

    Devices are counted, not rounds: of one device there may be a thousand, which say nothing of the next.
    Virtual devices are groups of their own.

    Args:
        connection: the database.
        by: what the devices of a group have in common.
        model: only of this model.
        since: only devices with a measurement at this time or later.

    Raises:
        NotFound: there is no such model.
    """
    candidate_filter(connection, device=None, model=model)
    device_by_id = devices_by_id(connection)
    group_by_device = {
        device_id: _group(device.facts, by) for device_id, device in device_by_id.items() if device.facts
    }
    points = _newest_points(connection, list(group_by_device), model=model, since=since)
    series = series_by_id(connection, {point.series_id for point in points})
    measured: defaultdict[tuple[_Group, str | None], set[DeviceId]] = defaultdict(set)
    compared: defaultdict[tuple[_Group, _Comparison], list[DevicePoint]] = defaultdict(list)
    for point in points:
        group = group_by_device[point.device_id]
        measured[group, series[point.series_id].model].add(point.device_id)
        compared[group, (point.slot, point.baseline_slot)].append(point)
    newest = {key: max(own, key=lambda point: point.ended_at) for key, own in compared.items()}
    cells = cells_of_points(connection, [point.cell_id for point in newest.values()])
    views = [
        _view(
            by,
            group,
            own,
            series[newest[group, comparison].series_id],
            cells[newest[group, comparison].cell_id],
            of_devices=len(measured[group, series[own[0].series_id].model]),
        )
        for (group, comparison), own in compared.items()
    ]
    return sorted(
        views,
        key=lambda view: (view.group or "", view.virtual, view.model or "", view.baseline, view.candidate),
    )


def _group(facts: DeviceFacts, by: GroupBy) -> _Group:
    value_by_kind = {
        GroupBy.DEVICE_MODEL: facts.device_model,
        GroupBy.SOC: facts.soc,
        GroupBy.ANDROID: facts.android,
        GroupBy.ALL: "all devices",
    }
    return value_by_kind[by], facts.virtual


def _newest_points(
    connection: Connection,
    device_ids: Collection[DeviceId],
    *,
    model: str | None,
    since: datetime | None,
) -> list[DevicePoint]:
    """Return one point for each device and comparison, those that are to be computed yet among them."""
    stored = newest_of_devices(connection, device_ids, model=model, since=since)
    found = {(point.device_id, point.slot, point.baseline_slot): point for point in stored}
    known = {*device_ids}
    for of_session in reversed(pending_points(connection).values()):
        computed = [point for point in of_session if point.device_id in known]
        models = {
            series_id: own.model
            for series_id, own in series_by_id(connection, {point.series_id for point in computed}).items()
        }
        for point in computed:
            values = point.values
            if (
                point.baseline_slot is None
                or values.time_ns is None
                or values.baseline_ns is None
                or point.replica > 1
                or (model is not None and models[point.series_id] != model)
                or (since is not None and point.ended_at < since)
            ):
                continue
            key = point.device_id, point.slot, point.baseline_slot
            if key not in found or found[key].matrix_id <= point.matrix_id:
                found[key] = DevicePoint(
                    device_id=point.device_id,
                    matrix_id=point.matrix_id,
                    cell_id=point.cell_id,
                    series_id=point.series_id,
                    slot=point.slot,
                    baseline_slot=point.baseline_slot,
                    time_ns=values.time_ns,
                    baseline_ns=values.baseline_ns,
                    ended_at=point.ended_at,
                )
    return [found[key] for key in sorted(found)]


def _view(
    by: GroupBy,
    group: _Group,
    points: Sequence[DevicePoint],
    series: TrendSeries,
    cell: PointCell,
    *,
    of_devices: int,
) -> GroupSpeedupView:
    logs = [math.log(point.baseline_ns) - math.log(point.time_ns) for point in points]
    mean = math.fsum(logs) / len(logs)
    interval = log_interval(logs) if len(logs) >= MIN_DEVICES else None
    return GroupSpeedupView(
        by=by,
        group=group[0],
        virtual=group[1],
        model=series.model,
        harness=series.harness,
        baseline=cell.baseline_label or "",
        candidate=cell.label,
        devices=len(points),
        of_devices=of_devices,
        speedup=math.exp(mean),
        ci_low=None if interval is None else bounded_exp(interval.low),
        ci_high=None if interval is None else bounded_exp(interval.high),
        low=math.exp(min(logs)),
        high=math.exp(max(logs)),
        baseline_ns=geometric_mean([point.baseline_ns for point in points]),
        candidate_ns=geometric_mean([point.time_ns for point in points]),
        measured_until=max(point.ended_at for point in points),
    )
