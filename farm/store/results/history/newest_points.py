"""The newest points of comparisons over devices, read from one index as plain tuples."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.base.microseconds import to_microseconds
from farm.core.results.history.session_point import SessionPoint
from farm.database.rows import is_among
from farm.database.tables import cells, device_facts, devices, points, programs, series, variants


class DevicePoint(NamedTuple):
    """The newest numbers of a comparison on a device; a plain tuple, because there may be many thousands."""

    device_id: DeviceId
    matrix_id: MatrixId
    cell_id: CellId
    slot: int
    baseline_slot: int
    time_ns: float
    baseline_ns: float
    #: As it is stored, in microseconds since 1970: to make times of a thousand takes as long as to read them.
    ended_us: int

    @property
    def slots(self) -> "SlotPair":
        """Return what is compared."""
        return SlotPair(self.slot, self.baseline_slot)

    @classmethod
    def of(cls, point: SessionPoint) -> Self | None:
        """Return a point as it is stored; None for what has no ratio, and for duplicates of baselines."""
        values = point.values
        if point.baseline_slot is None or point.replica > 1:
            return None
        if values.time_ns is None or values.baseline_ns is None:
            return None
        return cls(
            device_id=point.device_id,
            matrix_id=point.matrix_id,
            cell_id=point.cell_id,
            slot=point.slot,
            baseline_slot=point.baseline_slot,
            time_ns=values.time_ns,
            baseline_ns=values.baseline_ns,
            ended_us=to_microseconds(point.ended_at),
        )


class SlotPair(NamedTuple):
    """What is compared on all devices: the slots of candidate and baseline."""

    slot: int
    baseline_slot: int


class Comparison(NamedTuple):
    """A pair of slots that was compared, with the names that it has in one of its cells."""

    slots: SlotPair
    #: None if the harness runs no model.
    model: str | None
    harness: str
    candidate: str
    baseline: str


class DeviceTrait(NamedTuple):
    """What a device is grouped by; None: not reported."""

    device_id: DeviceId
    virtual: bool | None
    trait: str | None


def device_point_columns(of: sa.FromClause) -> list[sa.ColumnElement[Any]]:
    """Return the columns of a `DevicePoint` in the table of points, or an alias of it."""
    ended_us = sa.type_coerce(of.c.ended_at, sa.BigInteger).label("ended_us")
    return [*(of.c[name] for name in DevicePoint._fields if name != "ended_us"), ended_us]


#: The condition of the index `ix_points_newest_of_slot`, which holds all columns of a `DevicePoint`.
_COMPARED = sa.text(
    "points.newest AND points.replica = 1 AND points.rounds > 0 AND points.baseline_slot IS NOT NULL"
)


def _comparisons_query() -> sa.Select[Any]:
    """Return the query of all comparisons: a step into the index for each, however many devices there are.

    SQLite would seek a pair that is greater than another by its first column only, and then read all devices.
    """
    slots = (points.c.slot, points.c.baseline_slot)
    first = sa.select(points.c.cell_id, *slots).where(_COMPARED).order_by(*slots).limit(1).subquery()
    found = sa.select(first).cte("found", recursive=True)

    def first_where(*conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
        query = sa.select(points.c.cell_id).where(_COMPARED, *conditions).order_by(*slots).limit(1)
        return query.correlate(found).scalar_subquery()

    following = sa.func.coalesce(
        first_where(points.c.slot == found.c.slot, points.c.baseline_slot > found.c.baseline_slot),
        first_where(points.c.slot > found.c.slot),
    )
    next_point = points.alias("next_point")
    found = found.union_all(
        sa.select(next_point.c.cell_id, next_point.c.slot, next_point.c.baseline_slot).select_from(
            found.join(next_point, next_point.c.cell_id == following)
        )
    )
    return sa.select(found)


# Built once: that takes longer than their answers.
_ITS = cells.alias("its")
_COMPARISONS_QUERY = _comparisons_query()
_NAMES_QUERY = (
    sa.select(cells.c.cell_id, variants.c.model, programs.c.harness, cells.c.label, _ITS.c.label)
    .join(programs, programs.c.program_id == cells.c.program_id)
    .join(_ITS, sa.and_(_ITS.c.matrix_id == cells.c.matrix_id, _ITS.c.cell_index == cells.c.baseline_index))
    .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
)
_NEWEST_QUERY = sa.select(*device_point_columns(points)).where(
    _COMPARED,
    points.c.slot == sa.bindparam("slot"),
    points.c.baseline_slot == sa.bindparam("baseline_slot"),
)
_VIRTUAL_QUERY = sa.select(devices.c.device_id, device_facts.c.facts["virtual"].as_boolean()).join(
    device_facts, device_facts.c.facts_id == devices.c.facts_id
)


def list_comparisons(connection: Connection) -> list[Comparison]:
    """Return the comparisons that some device has newest points of."""
    rows = connection.execute(_COMPARISONS_QUERY).all()
    return _named(connection, {SlotPair(slot, its_slot): CellId(cell_id) for cell_id, slot, its_slot in rows})


def comparisons_of_points(connection: Connection, known: Iterable[DevicePoint]) -> list[Comparison]:
    """Return the comparisons of points, whether they are stored or not."""
    return _named(connection, {point.slots: point.cell_id for point in known})


def _named(connection: Connection, cell_by_slots: Mapping[SlotPair, CellId]) -> list[Comparison]:
    if not cell_by_slots:
        return []
    among = is_among(connection, cells.c.cell_id, [*cell_by_slots.values()])
    names = {row[0]: row[1:] for row in connection.execute(_NAMES_QUERY.where(among)).all()}
    return [Comparison(slots, *names[cell_id]) for slots, cell_id in cell_by_slots.items()]


def newest_points(
    connection: Connection, slots: SlotPair, *, since: datetime | None = None
) -> list[DevicePoint]:
    """Return the newest points of a comparison on all devices; with `since`, those that ended since then."""
    query = _NEWEST_QUERY if since is None else _NEWEST_QUERY.where(points.c.ended_at >= since)
    return [DevicePoint._make(row) for row in connection.execute(query, slots._asdict()).all()]


def devices_with_model(
    connection: Connection, model: str | None, *, among: Collection[DeviceId], since: datetime | None
) -> set[DeviceId]:
    """Return those devices that have newest points of any comparison of a model."""
    own = (
        sa.exists()
        .where(_COMPARED, points.c.device_id == devices.c.device_id)
        .where(series.c.series_id == points.c.series_id, series.c.model.is_not_distinct_from(model))
    )
    if since is not None:
        own = own.where(points.c.ended_at >= since)
    query = sa.select(devices.c.device_id).where(devices.c.device_id.in_(list(among)), own)
    return {DeviceId(device_id) for device_id in connection.execute(query).scalars()}


def list_device_traits(connection: Connection, trait: str | None) -> list[DeviceTrait]:
    """Return a trait of each device whose facts are known, as its facts name it; with None, no trait."""
    value = sa.null() if trait is None else device_facts.c.facts[trait].as_string()
    query = _VIRTUAL_QUERY.add_columns(value)
    return [DeviceTrait._make(row) for row in connection.execute(query).all()]
