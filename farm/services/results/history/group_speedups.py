"""Speedups over devices that have something in common: each device counts once, with its newest session."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.base.microseconds import from_microseconds, to_microseconds
from farm.core.errors import InvalidInput
from farm.core.models.builders import is_unoptimized
from farm.core.results.history.chosen_labels import ChosenLabels, PairChoice
from farm.core.results.statistics.interval import bounded_exp, log_interval
from farm.database.known_at import as_known_at
from farm.services.results.history.chosen_cells import candidate_filter
from farm.services.results.history.listed_pairs import PairScope, PointsAgainst, known_labels, points_against
from farm.services.results.history.past_points import newest_points_at
from farm.services.results.history.session_points import pending_points
from farm.store.files.variants import baseline_manifests
from farm.store.matrices.candidates import CandidateFilter
from farm.store.matrices.matrices import newest_matrix_at
from farm.store.results.history.newest_points import (
    Comparison,
    DevicePoint,
    DeviceTrait,
    SlotPair,
    compared_by_slots,
    comparisons_of_points,
    devices_by_trait,
    devices_with_model,
    list_comparisons,
    newest_points,
)
from farm.store.results.history.past_points import points_ended_by
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView

#: Devices of which a group has an interval.
MIN_DEVICES = 3
#: The newest matrices with both sides in which a block of both is looked for, where they planned no pair.
_MATRICES_AGAINST = 3
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
        baseline: only against cells with these words in their label, planned as baselines or not.
        candidate: only candidates with these words in their label.
        since: only devices with a measurement at this time or later.
        at: as known then, of the sessions that had ended by then.

    Raises:
        NotFound: there is no such model, baseline or candidate.
        InvalidInput: too much was retracted or parsed again since `at`, no device has a block of both sides,
            or too many pairs were not planned as such.
    """
    group_by_device = _group_by_device(connection, by)
    if at is None:
        pending = pending_points(connection)
        computed = compared_by_slots(chain.from_iterable(pending.values()))
        if pending:
            # The newest stored point may be one of theirs, which an older one takes the place of.
            affected = {session.device_id for session in pending}
            older = points_ended_by(connection, None, without=pending, device_ids=affected)
            computed = {
                slots: [*older.get(slots, ()), *computed.get(slots, ())] for slots in {**older, **computed}
            }
        known = [*list_comparisons(connection), *comparisons_of_points(connection, computed)]
    else:
        pending, computed = {}, newest_points_at(connection, at)
        known = comparisons_of_points(connection, computed)
    comparisons = {own.slots: own for own in reversed(known) if model is None or own.model == model}
    if not comparisons:
        # Maybe there is no such model.
        candidate_filter(connection, device=None, model=model)
    labels = _labels(connection, comparisons.values(), baseline=baseline, candidate=candidate)
    chosen = {
        slots
        for slots, own in comparisons.items()
        if (labels.baseline is None or own.baseline in labels.baseline) and labels.is_candidate(own.candidate)
    }
    since_us = None if since is None else to_microseconds(since)
    measured: defaultdict[str | None, set[DeviceId]] = defaultdict(set)
    compared: dict[tuple[_Group, SlotPair], list[DevicePoint]] = {}
    for slots, comparison in comparisons.items():
        stored = newest_points(connection, slots, since=since) if at is None and slots in chosen else []
        if pending:
            stored = [point for point in stored if (point.matrix_id, point.device_id) not in pending]
        later = computed.get(slots, ())
        if since_us is not None:
            later = [point for point in later if point.ended_us >= since_us]
        points = _one_of_each(stored, later, group_by_device.keys())
        measured[comparison.model].update(points)
        if slots in chosen:
            for group, of_group in _by_group(points, group_by_device).items():
                compared[group, slots] = of_group
    if labels.baseline is not None:
        planned = {(point.device_id, slots) for (_, slots), points in compared.items() for point in points}
        against = _points_against(connection, labels, model=model, since=since, at=at, without=planned)
        comparisons = {**{own.slots: own for own in against.comparisons}, **comparisons}
        for slots, further in against.by_slots.items():
            points = _one_of_each(further, (), group_by_device.keys())
            measured[comparisons[slots].model].update(points)
            for group, of_group in _by_group(points, group_by_device).items():
                compared.setdefault((group, slots), []).extend(of_group)
        if not compared and since is None and at is None:
            named = f"`{baseline}` and {'any other cell' if candidate is None else f'`{candidate}`'}"
            raise InvalidInput(
                f"no block with both {named} in the newest matrices of any device",
                hint="a matrix with both measures them side by side",
            )
    if at is None and len(chosen) < len(comparisons):
        for name, own in measured.items():
            if others := group_by_device.keys() - own:
                own |= devices_with_model(connection, name, among=others, since=since)
    of_devices = {name: Counter(map(group_by_device.__getitem__, own)) for name, own in measured.items()}
    unoptimized = _unoptimized_baselines(connection, compared)
    views = [
        _view(
            by,
            group,
            points_of_group,
            comparisons[slots],
            baseline_unoptimized=slots.baseline_slot in unoptimized,
            of_devices=of_devices[comparisons[slots].model][group],
        )
        for (group, slots), points_of_group in compared.items()
    ]
    return sorted(
        views,
        key=lambda view: (view.group or "", view.virtual, view.model or "", view.baseline, view.candidate),
    )


def _labels(
    connection: Connection,
    comparisons: Collection[Comparison],
    *,
    baseline: str | None,
    candidate: str | None,
) -> ChosenLabels:
    """Return the labels of both sides; a baseline need not be a planned one. Raises like `PairChoice`."""
    choice = PairChoice(baseline=baseline, candidate=candidate)
    if baseline is None:
        return choice.chosen(own.candidate for own in comparisons)
    planned = {label for own in comparisons for label in (own.baseline, own.candidate)}
    return choice.chosen(planned | known_labels(connection))


def _points_against(
    connection: Connection,
    labels: ChosenLabels,
    *,
    model: str | None,
    since: datetime | None,
    at: datetime | None,
    without: Collection[tuple[DeviceId, SlotPair]],
) -> PointsAgainst:
    """Return the points of pairs that were not planned on their devices, as known at a time."""
    scope = PairScope(
        until=None if at is None else newest_matrix_at(connection, at),
        since=since,
        which=None,
        pooled=_MATRICES_AGAINST,
    )
    then = as_known_at(connection, at)
    return points_against(then, CandidateFilter(model=model), scope, labels, without=without)


#: What devices of a group have in common; none if all devices are one group.
_TRAIT_BY_KIND = {
    GroupBy.DEVICE_MODEL: DeviceTrait.DEVICE_MODEL,
    GroupBy.SOC: DeviceTrait.SOC,
    GroupBy.ANDROID: DeviceTrait.ANDROID,
}


def _group_by_device(connection: Connection, by: GroupBy) -> dict[DeviceId, _Group]:
    """Return the group of each device whose facts are known."""
    groups = devices_by_trait(connection, _TRAIT_BY_KIND.get(by))
    found: dict[DeviceId, _Group] = {}
    for (trait, virtual), device_ids in groups.items():
        found |= dict.fromkeys(device_ids, ("all devices" if by is GroupBy.ALL else trait, virtual))
    return found


def _by_group(
    points: Mapping[DeviceId, DevicePoint], group_by_device: Mapping[DeviceId, _Group]
) -> dict[_Group, list[DevicePoint]]:
    groups: defaultdict[_Group, list[DevicePoint]] = defaultdict(list)
    for device_id, point in points.items():
        groups[group_by_device[device_id]].append(point)
    return groups


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


def _unoptimized_baselines(
    connection: Connection, compared: Mapping[tuple[_Group, SlotPair], Sequence[DevicePoint]]
) -> set[int]:
    """Return the slots of baselines whose file phones could run faster, by one device of each group."""
    slots_by_cell = {points[0].cell_id: slots for (_, slots), points in compared.items()}
    manifests = baseline_manifests(connection, slots_by_cell) if slots_by_cell else {}
    return {slots_by_cell[cell].baseline_slot for cell, file in manifests.items() if is_unoptimized(file)}


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
