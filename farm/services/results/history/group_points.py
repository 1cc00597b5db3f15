"""Points of comparisons over devices: stored, computed for one answer, and as known at a moment."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, SeriesId
from farm.core.base.microseconds import to_microseconds
from farm.core.errors import InvalidInput
from farm.core.results.history.session_point import SessionPoint
from farm.core.results.speedup import PairedMeans
from farm.core.results.statistics.log_sums import LogSums
from farm.database.known_at import as_known_at
from farm.services.results.history.listed_pairs import PairsAgainst
from farm.services.results.history.session_points import COMPUTED_AT_ONCE, pending_points, session_points
from farm.services.results.speedups.inputs import SpeedupInputs
from farm.store.results.history.newest_points import (
    Comparison,
    DeviceGroup,
    DevicePoint,
    DeviceTrait,
    NewestSums,
    PointPrecision,
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
from farm.store.results.history.past_points import points_ended_by, sessions_superseded_since
from farm.store.results.history.points import slots_of_series
from farm.store.results.history.stale_points import MeasuredSession, pending_sessions
from farm.wire.documents.results.history import GroupBy

#: Sessions that changed since, and are computed again for an answer, at most.
MOST_CHANGED = 200
#: Pairs on devices that are compared for one answer at most, where their matrices did not plan them.
MOST_AGAINST = 2000
#: What devices of a group have in common; none if all devices are one group.
_TRAIT_BY_KIND = {
    GroupBy.DEVICE_MODEL: DeviceTrait.DEVICE_MODEL,
    GroupBy.SOC: DeviceTrait.SOC,
    GroupBy.ANDROID: DeviceTrait.ANDROID,
    GroupBy.DEVICE: DeviceTrait.NAME,
}
#: The newest point of each device, by what is compared and the devices' group.
GroupPoints = Mapping[SlotPair, Mapping[DeviceGroup, Collection[DevicePoint]]]
#: The numbers of each comparison and group.
GroupSums = dict[SlotPair, dict[DeviceGroup, NewestSums]]
#: The number of devices of each model and group.
DeviceCounts = Counter[tuple[str | None, DeviceGroup]]


def newest_points_at(
    connection: Connection, at: datetime, pending: Sequence[MeasuredSession]
) -> tuple[dict[SlotPair, list[DevicePoint]], list[SessionPoint]]:
    """Return the newest points of sessions that had ended by a time by slots, as known then.

    Those among them that are not stored as they were are returned in full, too.

    Points hold what is known now, so sessions of which something was retracted or parsed again since are
    computed again, and those whose points are not computed yet, `pending`.

    Raises:
        InvalidInput: there are more than `MOST_CHANGED` of them.
    """
    changed = sessions_superseded_since(connection, at, limit=MOST_CHANGED + 1)
    if len(changed) > MOST_CHANGED:
        raise InvalidInput(
            f"more than {MOST_CHANGED} sessions were retracted or parsed again since {at.isoformat()}",
            hint="without --by, `farm speedups --at` has no such limit",
        )
    again = {*changed, *pending[:COMPUTED_AT_ONCE]}
    found = points_ended_by(connection, at, without=again)
    then = as_known_at(connection, at)
    computed: list[SessionPoint] = []
    for session in sorted(again):
        ended = [point for point in session_points(then, session) if point.ended_at <= at]
        computed += ended
        for slots, points in compared_by_slots(ended).items():
            found.setdefault(slots, []).extend(points)
    return found, computed


class StoredPoints:
    """The newest stored points, but of the devices whose points are computed for this answer."""

    def __init__(
        self, connection: Connection, by: GroupBy, *, since: datetime | None, without: Collection[DeviceId]
    ) -> None:
        self.without = without
        self._connection, self._trait, self._since = connection, _TRAIT_BY_KIND.get(by), since
        self._sums: dict[SlotPair, dict[DeviceGroup, NewestSums]] = {}
        #: All devices of each group.
        self._known: dict[DeviceGroup, int] = {}

    def sums(self, slots: SlotPair) -> dict[DeviceGroup, NewestSums]:
        """Return the sums of a comparison over the devices of each group."""
        self._sums[slots], self._known = newest_sums(
            self._connection, slots, self._trait, since=self._since, without=self.without
        )
        return {**self._sums[slots]}

    def are_of_all_devices(self, slots: SlotPair) -> bool:
        """Tell whether a comparison, of which there are sums, was measured on all devices."""
        return sum(own.sums.devices for own in self._sums[slots].values()) == sum(self._known.values())

    def on_devices(self, pairs: Collection[SlotPair]) -> set[tuple[DeviceId, SlotPair]]:
        """Return on which devices each of these comparisons was measured."""
        return compared_on_devices(self._connection, pairs, since=self._since, without=self.without)

    def count_with_model(
        self, model: str | None, compared: Mapping[SlotPair, Collection[DeviceGroup]]
    ) -> dict[DeviceGroup, int]:
        """Return the number of devices of each group that measured a model.

        Args:
            model: of all comparisons that are asked.
            compared: those, and the groups of which the number is asked.
        """
        asked = set(chain.from_iterable(compared.values()))
        widest: dict[DeviceGroup, int] = {}
        for slots in compared:
            for group, own in self._sums[slots].items():
                widest[group] = max(widest.get(group, 0), own.sums.devices)
        if all(group in widest and widest[group] == self._known[group] for group in asked):
            return {group: self._known[group] for group in asked}
        besides = max(compared, key=lambda slots: sum(own.sums.devices for own in self._sums[slots].values()))
        others = count_devices_with_model(
            self._connection, model, self._trait, besides=besides, since=self._since, without=self.without
        )
        counted = {group: sums.sums.devices for group, sums in self._sums[besides].items()}
        return {group: counted.get(group, 0) + others.get(group, 0) for group in asked}


class NewestPoints:
    """What answers of one transaction are made of besides stored points, whatever their groups."""

    def __init__(self, connection: Connection, *, at: datetime | None) -> None:
        #: The time as of which points are known; None: now.
        self.at = at
        #: The sessions whose points are not computed yet, the newest first.
        self.pending = pending_sessions(connection)
        #: The devices whose newest points are all computed here, as of now.
        self.devices: Collection[DeviceId] = ()
        #: Points that are not stored as they are, in full.
        self.not_stored: Sequence[SessionPoint]
        self.computed: PointsBySlots
        if at is None:
            points = pending_points(connection, self.pending)
            self.devices = {session.device_id for session in points}
            self.not_stored = [*chain.from_iterable(points.values())]
            own = compared_by_slots(self.not_stored)
            older: PointsBySlots = {}
            if points:
                # The newest stored point of a device may be of a session that is computed here: an older one
                # takes its place.
                older = points_ended_by(connection, None, without=points, device_ids=self.devices)
            self.computed = {
                slots: [*older.get(slots, ()), *own.get(slots, ())] for slots in {**older, **own}
            }
            named = [*list_comparisons(connection), *comparisons_of_points(connection, self.computed)]
        else:
            self.computed, self.not_stored = newest_points_at(connection, at, self.pending)
            named = comparisons_of_points(connection, self.computed)
        self.comparisons = {own.slots: own for own in reversed(named)}


class KnownPoints:
    """The newest points of planned pairs by group: stored, computed, or as known at a moment."""

    def __init__(
        self,
        connection: Connection,
        by: GroupBy,
        newest: NewestPoints,
        *,
        model: str | None,
        since: datetime | None,
    ) -> None:
        self._connection, self._by, self._since = connection, by, since
        #: None as of a moment: what is stored is known now.
        self.stored: StoredPoints | None = None
        if newest.at is None:
            self.stored = StoredPoints(connection, by, since=since, without=newest.devices)
        self.comparisons = {
            slots: own for slots, own in newest.comparisons.items() if model is None or own.model == model
        }
        self._computed = self.by_group(newest.computed)

    @cached_property
    def group_by_device(self) -> Mapping[DeviceId, DeviceGroup]:
        """Return the group of each device whose facts are known."""
        groups = devices_by_group(self._connection, _TRAIT_BY_KIND.get(self._by))
        return {device_id: group for group, its in groups.items() for device_id in its}

    def by_group(self, points: PointsBySlots) -> GroupPoints:
        """Return the point of the newest matrix on each device whose facts are known, by group."""
        if not points:
            return {}
        since_us = None if self._since is None else to_microseconds(self._since)
        found: defaultdict[SlotPair, defaultdict[DeviceGroup, list[DevicePoint]]]
        found = defaultdict(lambda: defaultdict(list))
        for slots, own in points.items():
            newest: dict[DeviceId, DevicePoint] = {}
            for point in sorted(own, key=lambda point: point.matrix_id):
                if since_us is None or point.ended_us >= since_us:
                    newest[point.device_id] = point
            for device_id, point in newest.items():
                if device_id in self.group_by_device:
                    found[slots][self.group_by_device[device_id]].append(point)
        return found

    def sums(self, pairs: Collection[SlotPair]) -> GroupSums:
        """Return the sums of comparisons over the devices of each group."""
        found: GroupSums = {slots: {} if self.stored is None else self.stored.sums(slots) for slots in pairs}
        add_points(found, {slots: self._computed[slots] for slots in pairs if slots in self._computed})
        return found

    def computed_on_devices(self, pairs: Collection[SlotPair]) -> set[tuple[DeviceId, SlotPair]]:
        """Return on which devices each of these comparisons has a point that is not read as a sum."""
        return {
            (point.device_id, slots)
            for slots in pairs
            for points in self._computed.get(slots, {}).values()
            for point in points
        }

    def count_devices(self, compared: GroupSums) -> DeviceCounts:
        """Return the number of devices of each model and group that measured a planned pair.

        Args:
            compared: the sums of pairs that were asked for by `sums`.
        """
        counts = Counter(
            {key: len(own) for key, own in _devices_of(self.comparisons, self._computed).items()}
        )
        if self.stored is not None:
            for name in {self.comparisons[slots].model for slots in compared}:
                of_model = {
                    slots: groups
                    for slots, groups in compared.items()
                    if self.comparisons[slots].model == name
                }
                for group, devices in self.stored.count_with_model(name, of_model).items():
                    counts[name, group] += devices
        return counts

    def count_devices_with(
        self, comparisons: Mapping[SlotPair, Comparison], further: GroupPoints, models: Collection[str | None]
    ) -> DeviceCounts:
        """Count the devices of each model and group that measured a planned pair, or a further one.

        Args:
            comparisons: what planned and further pairs compare.
            further: the points of further pairs.
            models: those that are counted.
        """
        measured = _devices_of(comparisons, self._computed)
        for key, devices in _devices_of(comparisons, further).items():
            measured[key] |= devices
        if self.stored is not None:
            among = self.group_by_device.keys() - self.stored.without
            for name in models:
                for device_id in devices_with_model(self._connection, name, among=among, since=self._since):
                    measured[name, self.group_by_device[device_id]].add(device_id)
        return Counter({key: len(own) for key, own in measured.items()})


def add_points(sums: GroupSums, points: GroupPoints) -> None:
    """Add the points of further devices to what is summed up of comparisons."""
    for slots, groups in points.items():
        own = sums.setdefault(slots, {})
        for group, its in groups.items():
            own[group] = _with_points(own.get(group), its)


def _with_points(stored: NewestSums | None, points: Collection[DevicePoint]) -> NewestSums:
    own = NewestSums(
        sums=LogSums.of((point.time_ns, point.baseline_ns) for point in points),
        cell_id=max(point.cell_id for point in points),
        ended_us=max(point.ended_us for point in points),
    )
    if stored is None:
        return own
    return NewestSums(
        sums=stored.sums.with_others(own.sums),
        cell_id=max(stored.cell_id, own.cell_id),
        ended_us=max(stored.ended_us, own.ended_us),
    )


def _devices_of(
    comparisons: Mapping[SlotPair, Comparison], points: GroupPoints
) -> defaultdict[tuple[str | None, DeviceGroup], set[DeviceId]]:
    """Return the devices of each model and group that have points of it."""
    devices: defaultdict[tuple[str | None, DeviceGroup], set[DeviceId]] = defaultdict(set)
    for slots, comparison in comparisons.items():
        for group, own in points.get(slots, {}).items():
            devices[comparison.model, group].update(point.device_id for point in own)
    return devices


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsAgainst:
    """The newest points of chosen pairs, and what each of them compares."""

    by_slots: Mapping[SlotPair, Sequence[DevicePoint]] = field(default_factory=dict)
    comparisons: Sequence[Comparison] = ()
    #: By cells and the slots of their baselines.
    baseline_cells: Mapping[tuple[CellId, int | None], CellId] = field(default_factory=dict)
    precisions: Mapping[tuple[CellId, int | None], PointPrecision] = field(default_factory=dict)


def points_against(
    connection: Connection, pairs: PairsAgainst, *, without: Collection[tuple[DeviceId, SlotPair]]
) -> PointsAgainst:
    """Return the newest point of each pair of chosen labels on each device, over rounds in common blocks.

    Args:
        connection: the database.
        pairs: the pairs.
        without: pairs on devices that are known, as they were planned.

    Raises:
        InvalidInput: there are more than `MOST_AGAINST`, or a baseline may be several cells of a device.
    """
    keys = [key for page in pairs.after(None, size=MOST_AGAINST) for key in page]
    sides = {SeriesId(number) for key in keys for number in (key.series_id, key.baseline_series_id)}
    slots = slots_of_series(connection, sides)
    further = [
        key
        for key in keys
        if (
            key.device_id,
            SlotPair(slots[SeriesId(key.series_id)], slots[SeriesId(key.baseline_series_id)]),
        )
        not in without
    ]
    if len(further) > MOST_AGAINST:
        raise InvalidInput(
            f"more than {MOST_AGAINST} pairs of devices and cells that were not planned as pairs",
            hint="--model and --candidate select fewer",
        )
    return _newest_points(pairs.compared(further, across_controls=False), slots)


def _newest_points(
    compared: Iterable[Sequence[SpeedupInputs]], slots: Mapping[SeriesId, int]
) -> PointsAgainst:
    """Return the point of the newest matrix of each pair that has a ratio in it."""
    found: defaultdict[SlotPair, list[DevicePoint]] = defaultdict(list)
    comparisons: dict[SlotPair, Comparison] = {}
    baseline_cells: dict[tuple[CellId, int | None], CellId] = {}
    precisions: dict[tuple[CellId, int | None], PointPrecision] = {}
    for newest, *_ in compared:
        means = newest.means()
        baseline_id, series_id = newest.series
        if means.ratio is None or baseline_id is None or series_id is None:
            continue
        own = SlotPair(slots[series_id], slots[baseline_id])
        cell = newest.candidate
        place = cell.cell_id, own.baseline_slot
        comparisons[own] = Comparison(own, cell.model, cell.harness, cell.label, newest.baseline.label)
        baseline_cells[place] = newest.baseline.cell_id
        precisions[place] = PointPrecision(cell.device_id, means.rounds, means.standard_error)
        found[own].append(_point(newest, means))
    return PointsAgainst(
        by_slots=found,
        comparisons=[*comparisons.values()],
        baseline_cells=baseline_cells,
        precisions=precisions,
    )


def _point(newest: SpeedupInputs, means: PairedMeans) -> DevicePoint:
    assert means.candidate_ns is not None
    assert means.baseline_ns is not None
    cell = newest.candidate
    return DevicePoint(
        device_id=cell.device_id,
        matrix_id=cell.matrix_id,
        cell_id=cell.cell_id,
        time_ns=means.candidate_ns,
        baseline_ns=means.baseline_ns,
        ended_us=max(value.measured_us for side in newest.sides for value in side),
    )
