"""Points of comparisons over devices: stored, computed for one answer, and as known at a moment."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import chain

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.base.microseconds import to_microseconds
from farm.core.errors import InvalidInput
from farm.core.results.history.session_point import SessionPoint
from farm.core.results.statistics.log_sums import LogSums
from farm.database.known_at import as_known_at
from farm.services.results.history.session_points import COMPUTED_AT_ONCE, session_points
from farm.store.results.history.newest_points import (
    Comparison,
    DeviceGroup,
    DevicePoint,
    DeviceTrait,
    NewestSums,
    PointsBySlots,
    SlotPair,
    compared_by_slots,
    count_devices_with_model,
    devices_by_group,
    devices_with_model,
    newest_sums,
)
from farm.store.results.history.past_points import points_ended_by, sessions_superseded_since
from farm.store.results.history.stale_points import MeasuredSession, pending_sessions
from farm.wire.documents.results.history import GroupBy

#: Sessions that changed since, and are computed again for an answer, at most.
MOST_CHANGED = 200


def newest_points_at(
    connection: Connection, at: datetime
) -> tuple[dict[SlotPair, list[DevicePoint]], list[SessionPoint]]:
    """Return the newest points of sessions that had ended by a time by slots, as known then.

    Those among them that are not stored as they were are returned in full, too.

    Points hold what is known now, so sessions of which something was retracted or parsed again since are
    computed again, and those whose points are not computed yet.

    Raises:
        InvalidInput: there are more than `MOST_CHANGED` of them.
    """
    changed = sessions_superseded_since(connection, at, limit=MOST_CHANGED + 1)
    if len(changed) > MOST_CHANGED:
        raise InvalidInput(
            f"more than {MOST_CHANGED} sessions were retracted or parsed again since {at.isoformat()}",
            hint="without --by, `farm speedups --at` has no such limit",
        )
    again = {*changed, *pending_sessions(connection)[:COMPUTED_AT_ONCE]}
    found = points_ended_by(connection, at, without=again)
    then = as_known_at(connection, at)
    computed: list[SessionPoint] = []
    for session in sorted(again):
        ended = [point for point in session_points(then, session) if point.ended_at <= at]
        computed += ended
        for slots, points in compared_by_slots(ended).items():
            found.setdefault(slots, []).extend(points)
    return found, computed


def with_older(
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
    GroupBy.DEVICE: DeviceTrait.NAME,
}
#: The newest point of each device, by what is compared and the devices' group.
GroupPoints = Mapping[SlotPair, Mapping[DeviceGroup, Collection[DevicePoint]]]


def _group_by_device(connection: Connection, by: GroupBy) -> dict[DeviceId, DeviceGroup]:
    """Return the group of each device whose facts are known."""
    groups = devices_by_group(connection, _TRAIT_BY_KIND.get(by))
    return {device_id: group for group, its in groups.items() for device_id in its}


def points_by_group(
    connection: Connection, by: GroupBy, computed: PointsBySlots, *, since: datetime | None
) -> GroupPoints:
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


def with_points(stored: NewestSums | None, points: Collection[DevicePoint]) -> NewestSums:
    """Return what is stored of a comparison and a group with the points of further devices."""
    own = NewestSums(
        sums=LogSums.of((point.time_ns, point.baseline_ns) for point in points),
        cell_id=max(point.cell_id for point in points),
        ended_us=max(point.ended_us for point in points),
        known=0,
    )
    if stored is None:
        return own
    return stored._replace(
        sums=stored.sums.with_others(own.sums),
        cell_id=max(stored.cell_id, own.cell_id),
        ended_us=max(stored.ended_us, own.ended_us),
    )


def devices_of(
    comparisons: Mapping[SlotPair, Comparison], points: GroupPoints
) -> defaultdict[tuple[str | None, DeviceGroup], set[DeviceId]]:
    """Return the devices of each model and group that have points of it."""
    devices: defaultdict[tuple[str | None, DeviceGroup], set[DeviceId]] = defaultdict(set)
    for slots, comparison in comparisons.items():
        for group, own in points.get(slots, {}).items():
            devices[comparison.model, group].update(point.device_id for point in own)
    return devices


def count_devices(
    connection: Connection,
    by: GroupBy,
    comparisons: Mapping[SlotPair, Comparison],
    computed: GroupPoints,
    further: GroupPoints,
    *,
    since: datetime | None,
    at: datetime | None,
) -> Counter[tuple[str | None, DeviceGroup]]:
    """Return the number of devices of each model of `further` and group that measured it."""
    group_by_device = _group_by_device(connection, by)
    measured, known = devices_of(comparisons, further), devices_of(comparisons, computed)
    if at is None:
        for name in {name for name, _ in measured}:
            stored = devices_with_model(connection, name, among=group_by_device, since=since)
            for device_id in stored:
                known[name, group_by_device[device_id]].add(device_id)
    return Counter({key: len(own | known[key]) for key, own in measured.items()})


class StoredPoints:
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
