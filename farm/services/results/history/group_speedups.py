"""Speedups over devices that have something in common: each device counts once, with its newest session."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.base.microseconds import from_microseconds, to_microseconds
from farm.core.models.builders import is_unoptimized
from farm.core.results.history.chosen_labels import check_chosen
from farm.core.results.history.session_point import SessionPoint
from farm.core.results.statistics.interval import bounded_exp, log_interval
from farm.services.results.history.past_points import newest_points_at
from farm.services.results.history.session_points import pending_points
from farm.services.results.speedups import candidate_filter
from farm.store.files.variants import variants_by_id
from farm.store.matrices.matrices import cells_by_id, planned_baselines
from farm.store.results.history.newest_points import (
    Comparison,
    DevicePoint,
    SlotPair,
    comparisons_of_points,
    devices_with_model,
    list_comparisons,
    list_device_traits,
    newest_points,
)
from farm.store.results.history.past_points import points_ended_by
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView

#: Devices of which a group has an interval.
MIN_DEVICES = 3
#: What devices have in common, and whether they are virtual.
_Group = tuple[str | None, bool]


def group_speedups(
    connection: Connection,
    by: GroupBy,
    *,
    model: str | None = None,
    baseline: str | None = None,
    candidate: str | None = None,
    since: datetime | None = None,
    at: datetime | None = None,
) -> list[GroupSpeedupView]:
    """Return the speedup of each comparison over the devices of each group.

    Devices are counted, not rounds: of one device there may be a thousand, which say nothing of the next.
    Virtual devices are groups of their own.

    Args:
        connection: the database.
        by: what the devices of a group have in common.
        model: only of this model.
        baseline: only against baselines with these words in their label.
        candidate: only candidates with these words in their label.
        since: only devices with a measurement at this time or later.
        at: as known then, of the sessions that had ended by then.

    Raises:
        NotFound: there is no such model, baseline or candidate.
        InvalidInput: too much was retracted or parsed again since `at`.
    """
    candidate_filter(connection, device=None, model=model)
    traits = list_device_traits(connection, _TRAIT_BY_KIND.get(by))
    group_by_device = {
        own.device_id: (own.trait if by in _TRAIT_BY_KIND else "all devices", bool(own.virtual))
        for own in traits
    }
    if at is None:
        pending = pending_points(connection)
        computed = _computed(pending.values())
        if pending:
            # The newest stored point may be one of theirs, which an older one takes the place of.
            affected = {session.device_id for session in pending}
            computed = [*points_ended_by(connection, None, without=pending, device_ids=affected), *computed]
        known = [*list_comparisons(connection), *comparisons_of_points(connection, computed)]
    else:
        pending, computed = {}, newest_points_at(connection, at)
        known = comparisons_of_points(connection, computed)
    comparisons = {own.slots: own for own in reversed(known) if model is None or own.model == model}
    chosen = _chosen(comparisons.values(), baseline=baseline, candidate=candidate)
    measured: defaultdict[str | None, set[DeviceId]] = defaultdict(set)
    later: defaultdict[SlotPair, list[DevicePoint]] = defaultdict(list)
    for point in computed:
        if since is None or point.ended_us >= to_microseconds(since):
            later[point.slots].append(point)
    compared: defaultdict[tuple[_Group, SlotPair], list[DevicePoint]] = defaultdict(list)
    for slots, comparison in comparisons.items():
        stored = newest_points(connection, slots, since=since) if at is None and slots in chosen else []
        if pending:
            stored = [point for point in stored if (point.matrix_id, point.device_id) not in pending]
        points = _one_of_each(stored, later[slots], group_by_device.keys())
        measured[comparison.model].update(points)
        if slots in chosen:
            for device_id, point in points.items():
                compared[group_by_device[device_id], slots].append(point)
    if at is None and len(chosen) < len(comparisons):
        for name, own in measured.items():
            if others := group_by_device.keys() - own:
                own |= devices_with_model(connection, name, among=others, since=since)
    unoptimized = _unoptimized_baselines(connection, [points[0] for points in compared.values()])
    views = [
        _view(
            by,
            group,
            points_of_group,
            comparisons[slots],
            baseline_unoptimized=slots.baseline_slot in unoptimized,
            of_devices=sum(group_by_device[its] == group for its in measured[comparisons[slots].model]),
        )
        for (group, slots), points_of_group in compared.items()
    ]
    return sorted(
        views,
        key=lambda view: (view.group or "", view.virtual, view.model or "", view.baseline, view.candidate),
    )


def _chosen(
    comparisons: Collection[Comparison], *, baseline: str | None, candidate: str | None
) -> set[SlotPair]:
    """Return the comparisons whose labels have the words that are asked for."""
    chosen = [*comparisons]
    if baseline is not None:
        baselines = check_chosen("baseline", baseline, [own.baseline for own in comparisons])
        chosen = [own for own in chosen if own.baseline in baselines]
    if candidate is not None:
        candidates = check_chosen("candidate", candidate, [own.candidate for own in chosen])
        chosen = [own for own in chosen if own.candidate in candidates]
    return {own.slots for own in chosen}


#: The fact that devices of a group have in common; none if all devices are one group.
_TRAIT_BY_KIND = {GroupBy.DEVICE_MODEL: "device_model", GroupBy.SOC: "soc", GroupBy.ANDROID: "android"}


def _computed(sessions: Iterable[Sequence[SessionPoint]]) -> list[DevicePoint]:
    """Return what sessions showed of comparisons whose points are not stored yet."""
    return [
        device_point for points in sessions for point in points if (device_point := DevicePoint.of(point))
    ]


def _one_of_each(
    stored: Iterable[DevicePoint], computed: Iterable[DevicePoint], known: Collection[DeviceId]
) -> dict[DeviceId, DevicePoint]:
    """Return the point of the newest matrix on each device; a computed one counts before a stored one."""
    newest = {point.device_id: point for point in stored if point.device_id in known}
    for point in computed:
        own = newest.get(point.device_id)
        if point.device_id in known and (own is None or own.matrix_id <= point.matrix_id):
            newest[point.device_id] = point
    return newest


def _unoptimized_baselines(connection: Connection, points: Sequence[DevicePoint]) -> set[int]:
    """Return the slots of the points' baselines whose file phones could run faster, of one device each."""
    candidates = {cell.cell_id: cell for cell in cells_by_id(connection, {point.cell_id for point in points})}
    baselines = planned_baselines(connection, candidates.keys())
    files = variants_by_id(connection, {cell.variant_id for cell in baselines if cell.variant_id is not None})
    unoptimized = {
        (cell.matrix_id, cell.index)
        for cell in baselines
        if cell.variant_id is not None and is_unoptimized(files[cell.variant_id].manifest)
    }
    return {
        point.baseline_slot
        for point in points
        if (cell := candidates.get(point.cell_id)) and (cell.matrix_id, cell.baseline_index) in unoptimized
    }


def _view(
    by: GroupBy,
    group: _Group,
    points: Sequence[DevicePoint],
    comparison: Comparison,
    *,
    baseline_unoptimized: bool,
    of_devices: int,
) -> GroupSpeedupView:
    times = [math.log(point.time_ns) for point in points]
    baseline_times = [math.log(point.baseline_ns) for point in points]
    logs = [its - own for its, own in zip(baseline_times, times, strict=True)]
    mean = math.fsum(logs) / len(logs)
    interval = log_interval(logs) if len(logs) >= MIN_DEVICES else None
    return GroupSpeedupView(
        by=by,
        group=group[0],
        virtual=group[1],
        model=comparison.model,
        harness=comparison.harness,
        baseline=comparison.baseline,
        baseline_unoptimized=baseline_unoptimized,
        candidate=comparison.candidate,
        devices=len(points),
        of_devices=of_devices,
        speedup=math.exp(mean),
        ci_low=None if interval is None else bounded_exp(interval.low),
        ci_high=None if interval is None else bounded_exp(interval.high),
        low=math.exp(min(logs)),
        high=math.exp(max(logs)),
        baseline_ns=math.exp(math.fsum(baseline_times) / len(logs)),
        candidate_ns=math.exp(math.fsum(times) / len(logs)),
        measured_until=from_microseconds(max(point.ended_us for point in points)),
    )
