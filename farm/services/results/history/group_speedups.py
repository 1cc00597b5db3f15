"""Speedups over devices that have something in common: each device counts once, with its newest session."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import chain

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.base.microseconds import from_microseconds, to_microseconds
from farm.core.errors import InvalidInput
from farm.core.models.builders import is_unoptimized
from farm.core.results.history.chosen_labels import ChosenLabels, PairChoice
from farm.core.results.history.session_point import SessionPoint
from farm.core.results.statistics.interval import bounded_exp
from farm.core.results.statistics.log_sums import LogSums
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
    DeviceGroup,
    DevicePoint,
    DeviceTrait,
    NewestSums,
    PointsBySlots,
    SlotPair,
    compared_by_slots,
    compared_on_devices,
    comparisons_of_points,
    count_devices_with_model,
    devices_by_group,
    devices_with_model,
    list_comparisons,
    newest_sums,
)
from farm.store.results.history.past_points import points_ended_by
from farm.store.results.history.stale_points import MeasuredSession
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView

#: Devices of which a group has an interval.
MIN_DEVICES = 3
#: The newest matrices with both sides in which a block of both is looked for, where they planned no pair.
_MATRICES_AGAINST = 3


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
    if at is None:
        pending = pending_points(connection)
        computed = _with_older(connection, pending)
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
        slots: own
        for slots, own in comparisons.items()
        if (labels.baseline is None or own.baseline in labels.baseline) and labels.is_candidate(own.candidate)
    }
    of_computed = _by_group(connection, by, computed, since=since)
    stored = _Stored(connection, by, since=since, without={session.device_id for session in pending})
    compared: dict[SlotPair, dict[DeviceGroup, NewestSums]] = {}
    for slots in chosen:
        sums = stored.sums(slots) if at is None else {}
        for group, points in of_computed.get(slots, {}).items():
            sums[group] = _joined(sums.get(group), points)
        compared[slots] = sums
    of_devices = Counter({key: len(own) for key, own in _devices(comparisons, of_computed).items()})
    if at is None:
        for name in {own.model for own in chosen.values()}:
            of_model = {slots: compared[slots] for slots, own in chosen.items() if own.model == name}
            for group, devices in stored.devices_with_model(name, of_model).items():
                of_devices[name, group] += devices
    if labels.baseline is not None:
        planned = {
            (point.device_id, slots)
            for slots in chosen
            for points in of_computed.get(slots, {}).values()
            for point in points
        }
        if at is None:
            planned |= compared_on_devices(connection, chosen, since=since)
        against = _points_against(connection, labels, model=model, since=since, at=at, without=planned)
        comparisons = {**{own.slots: own for own in against.comparisons}, **comparisons}
        further = _by_group(connection, by, against.by_slots, since=since)
        for slots, groups in further.items():
            own = compared.setdefault(slots, {})
            for group, points in groups.items():
                own[group] = _joined(own.get(group), points)
        of_devices |= _count_devices(connection, by, comparisons, of_computed, further, since=since, at=at)
        if not any(compared.values()) and since is None and at is None:
            named = f"`{baseline}` and {'any other cell' if candidate is None else f'`{candidate}`'}"
            raise InvalidInput(
                f"no block with both {named} in the newest matrices of any device",
                hint="a matrix with both measures them side by side",
            )
    unoptimized = _unoptimized_baselines(connection, compared)
    views = [
        _view(
            by,
            group,
            sums,
            comparisons[slots],
            baseline_unoptimized=slots.baseline_slot in unoptimized,
            of_devices=of_devices[comparisons[slots].model, group],
        )
        for slots, groups in compared.items()
        for group, sums in groups.items()
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


def _with_older(
    connection: Connection, pending: Mapping[MeasuredSession, Sequence[SessionPoint]]
) -> PointsBySlots:
    """Return the points of sessions that are not stored yet, and what their devices have of others.

    The newest stored point of such a device may be one of them, which an older one takes the place of.
    """
    if not pending:
        return {}
    computed = compared_by_slots(chain.from_iterable(pending.values()))
    devices = {session.device_id for session in pending}
    older = points_ended_by(connection, None, without=pending, device_ids=devices)
    return {slots: [*older.get(slots, ()), *computed.get(slots, ())] for slots in {**older, **computed}}


#: What devices of a group have in common; none if all devices are one group.
_TRAIT_BY_KIND = {
    GroupBy.DEVICE_MODEL: DeviceTrait.DEVICE_MODEL,
    GroupBy.SOC: DeviceTrait.SOC,
    GroupBy.ANDROID: DeviceTrait.ANDROID,
}
#: The newest point of each device, by what is compared and the devices' group.
_Points = Mapping[SlotPair, Mapping[DeviceGroup, Collection[DevicePoint]]]


def _group_by_device(connection: Connection, by: GroupBy) -> dict[DeviceId, DeviceGroup]:
    """Return the group of each device whose facts are known."""
    groups = devices_by_group(connection, _TRAIT_BY_KIND.get(by))
    return {device_id: group for group, its in groups.items() for device_id in its}


def _by_group(
    connection: Connection, by: GroupBy, computed: PointsBySlots, *, since: datetime | None
) -> _Points:
    """Return the point of the newest matrix on each device whose facts are known, by group."""
    if not computed:
        return {}
    group_by_device = _group_by_device(connection, by)
    since_us = None if since is None else to_microseconds(since)
    found: defaultdict[SlotPair, defaultdict[DeviceGroup, list[DevicePoint]]]
    found = defaultdict(lambda: defaultdict(list))
    for slots, points in computed.items():
        newest: dict[DeviceId, DevicePoint] = {}
        for point in sorted(points, key=lambda point: point.matrix_id):
            if since_us is None or point.ended_us >= since_us:
                newest[point.device_id] = point
        for device_id, point in newest.items():
            if device_id in group_by_device:
                found[slots][group_by_device[device_id]].append(point)
    return found


def _joined(stored: NewestSums | None, points: Collection[DevicePoint]) -> NewestSums:
    """Return what is stored of a comparison and a group with the points of further devices."""
    own = NewestSums(
        sums=LogSums.of((point.time_ns, point.baseline_ns) for point in points),
        cell_id=next(point.cell_id for point in points),
        ended_us=max(point.ended_us for point in points),
        known=0,
    )
    if stored is None:
        return own
    return stored._replace(
        sums=stored.sums.with_others(own.sums), ended_us=max(stored.ended_us, own.ended_us)
    )


def _devices(
    comparisons: Mapping[SlotPair, Comparison], points: _Points
) -> defaultdict[tuple[str | None, DeviceGroup], set[DeviceId]]:
    """Return the devices of each model and group that have points of it."""
    devices: defaultdict[tuple[str | None, DeviceGroup], set[DeviceId]] = defaultdict(set)
    for slots, comparison in comparisons.items():
        for group, own in points.get(slots, {}).items():
            devices[comparison.model, group].update(point.device_id for point in own)
    return devices


def _count_devices(
    connection: Connection,
    by: GroupBy,
    comparisons: Mapping[SlotPair, Comparison],
    computed: _Points,
    further: _Points,
    *,
    since: datetime | None,
    at: datetime | None,
) -> Counter[tuple[str | None, DeviceGroup]]:
    """Return the number of devices of each model of `further` and group that measured it."""
    group_by_device = _group_by_device(connection, by)
    measured, known = _devices(comparisons, further), _devices(comparisons, computed)
    if at is None:
        for name in {name for name, _ in measured}:
            stored = devices_with_model(connection, name, among=group_by_device, since=since)
            for device_id in stored:
                known[name, group_by_device[device_id]].add(device_id)
    return Counter({key: len(own | known[key]) for key, own in measured.items()})


class _Stored:
    """The newest stored points, but of the devices whose points are computed for this answer."""

    def __init__(
        self, connection: Connection, by: GroupBy, *, since: datetime | None, without: Collection[DeviceId]
    ) -> None:
        self._connection, self._trait = connection, _TRAIT_BY_KIND.get(by)
        self._since, self._without = since, without
        self._sums: dict[SlotPair, dict[DeviceGroup, NewestSums]] = {}

    def sums(self, slots: SlotPair) -> dict[DeviceGroup, NewestSums]:
        """Return the sums of a comparison over the devices of each group."""
        self._sums[slots] = newest_sums(
            self._connection, slots, self._trait, since=self._since, without=self._without
        )
        return {**self._sums[slots]}

    def devices_with_model(
        self, model: str | None, compared: Mapping[SlotPair, Collection[DeviceGroup]]
    ) -> dict[DeviceGroup, int]:
        """Return the number of devices of each group that measured a model.

        Args:
            model: of all comparisons that are asked.
            compared: those, and the groups of which the number is asked.
        """
        asked = set(chain.from_iterable(compared.values()))
        widest: dict[DeviceGroup, NewestSums] = {}
        for slots in compared:
            for group, own in self._sums[slots].items():
                if group not in widest or widest[group].sums.devices < own.sums.devices:
                    widest[group] = own
        if all(group in widest and widest[group].sums.devices == widest[group].known for group in asked):
            return {group: own.known for group, own in widest.items()}
        besides = max(compared, key=lambda slots: sum(own.sums.devices for own in self._sums[slots].values()))
        others = count_devices_with_model(
            self._connection,
            model,
            self._trait,
            besides=besides,
            since=self._since,
            without=self._without,
        )
        counted = {group: sums.sums.devices for group, sums in self._sums[besides].items()}
        return {group: counted.get(group, 0) + others.get(group, 0) for group in asked}


def _unoptimized_baselines(
    connection: Connection, compared: Mapping[SlotPair, Mapping[DeviceGroup, NewestSums]]
) -> set[int]:
    """Return the slots of baselines whose file phones could run faster, by one device of each group."""
    slots_by_cell = {own.cell_id: slots for slots, groups in compared.items() for own in groups.values()}
    manifests = baseline_manifests(connection, slots_by_cell) if slots_by_cell else {}
    return {slots_by_cell[cell].baseline_slot for cell, file in manifests.items() if is_unoptimized(file)}


def _view(
    by: GroupBy,
    group: DeviceGroup,
    compared: NewestSums,
    comparison: Comparison,
    *,
    baseline_unoptimized: bool,
    of_devices: int,
) -> GroupSpeedupView:
    sums = compared.sums
    interval = sums.interval() if sums.devices >= MIN_DEVICES else None
    return GroupSpeedupView(
        by=by,
        group="all devices" if by is GroupBy.ALL else group.trait,
        virtual=group.virtual,
        model=comparison.model,
        harness=comparison.harness,
        baseline=comparison.baseline,
        baseline_unoptimized=baseline_unoptimized,
        candidate=comparison.candidate,
        devices=sums.devices,
        of_devices=of_devices,
        speedup=math.exp(sums.speedup / sums.devices),
        ci_low=None if interval is None else bounded_exp(interval.low),
        ci_high=None if interval is None else bounded_exp(interval.high),
        low=math.exp(sums.least),
        high=math.exp(sums.most),
        baseline_ns=math.exp(sums.baseline / sums.devices),
        candidate_ns=math.exp(sums.time / sums.devices),
        measured_until=from_microseconds(compared.ended_us),
    )
