"""The newest points of comparisons over devices, read from one index as plain tuples."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.base.microseconds import to_microseconds
from farm.core.results.history.session_point import SessionPoint
from farm.database.rows import rows_query, rows_text
from farm.database.tables import cells, devices, points, programs, series, variants


class DevicePoint(NamedTuple):
    """The newest numbers of a comparison on a device; a plain tuple, because there may be many thousands."""

    device_id: DeviceId
    matrix_id: MatrixId
    cell_id: CellId
    time_ns: float
    baseline_ns: float
    #: As it is stored, in microseconds since 1970: to make times of a thousand takes as long as to read them.
    ended_us: int


class SlotPair(NamedTuple):
    """What is compared on all devices: the slots of candidate and baseline."""

    slot: int
    baseline_slot: int


#: Points by what they compare.
PointsBySlots = Mapping[SlotPair, Sequence[DevicePoint]]


class Comparison(NamedTuple):
    """A pair of slots that was compared, with the names that it has in one of its cells."""

    slots: SlotPair
    #: None if the harness runs no model.
    model: str | None
    harness: str
    candidate: str
    baseline: str


class DeviceTrait(StrEnum):
    """What devices can have in common: a column of theirs."""

    DEVICE_MODEL = "device_model"
    SOC = "soc"
    ANDROID = "android"


def compared_by_slots(computed: Iterable[SessionPoint]) -> dict[SlotPair, list[DevicePoint]]:
    """Return points as they are stored, without those of no ratio and without baselines' duplicates."""
    found: defaultdict[SlotPair, list[DevicePoint]] = defaultdict(list)
    for point in computed:
        values = point.values
        if point.baseline_slot is None or point.replica > 1:
            continue
        if values.time_ns is None or values.baseline_ns is None:
            continue
        found[SlotPair(point.slot, point.baseline_slot)].append(
            DevicePoint(
                device_id=point.device_id,
                matrix_id=point.matrix_id,
                cell_id=point.cell_id,
                time_ns=values.time_ns,
                baseline_ns=values.baseline_ns,
                ended_us=to_microseconds(point.ended_at),
            )
        )
    return found


def device_point_columns(of: sa.FromClause) -> list[sa.ColumnElement[Any]]:
    """Return the columns of a `DevicePoint` in the table of points, or an alias of it."""
    ended_us = sa.type_coerce(of.c.ended_at, sa.BigInteger).label("ended_us")
    return [*(of.c[name] for name in DevicePoint._fields if name != "ended_us"), ended_us]


#: The condition of the index `ix_points_newest_of_slot`, which holds all columns of a `DevicePoint`.
_COMPARED = sa.text(
    "points.newest AND points.replica = 1 AND points.rounds > 0 AND points.baseline_slot IS NOT NULL"
)


def _found_comparisons() -> sa.CTE:
    """Return a cell of each comparison: a step into the index for each, however many devices there are.

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
    return found


def _names_query(found: sa.FromClause) -> sa.Select[Any]:
    """Return the query of the columns of `Comparison`, each by the cell that is found for it."""
    its = cells.alias("its")
    return sa.select(
        found.c.slot, found.c.baseline_slot, variants.c.model, programs.c.harness, cells.c.label, its.c.label
    ).select_from(
        found.join(cells, cells.c.cell_id == found.c.cell_id)
        .join(programs, programs.c.program_id == cells.c.program_id)
        .join(its, sa.and_(its.c.matrix_id == cells.c.matrix_id, its.c.cell_index == cells.c.baseline_index))
        .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
    )


_FOUND = (points.c.cell_id, points.c.slot, points.c.baseline_slot)
# Built once: that takes longer than their answers.
_COMPARISONS_QUERY = _names_query(_found_comparisons())
_NEWEST_QUERY = sa.select(*device_point_columns(points)).where(
    _COMPARED,
    points.c.slot == sa.bindparam("slot"),
    points.c.baseline_slot == sa.bindparam("baseline_slot"),
)


def list_comparisons(connection: Connection) -> list[Comparison]:
    """Return the comparisons that some device has newest points of."""
    return [_comparison(row) for row in connection.execute(_COMPARISONS_QUERY).all()]


def comparisons_of_points(connection: Connection, known: PointsBySlots) -> list[Comparison]:
    """Return the comparisons of points, whether they are stored or not."""
    if not known:
        return []
    rows = rows_text([(own[-1].cell_id, *slots) for slots, own in known.items()])
    query = _names_query(rows_query(connection.dialect.name, _FOUND, rows).subquery("found"))
    return [_comparison(row) for row in connection.execute(query).all()]


def _comparison(row: Sequence[Any]) -> Comparison:
    slot, baseline_slot, *names = row
    return Comparison(SlotPair(slot, baseline_slot), *names)


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


def devices_by_trait(
    connection: Connection, trait: DeviceTrait | None
) -> dict[tuple[str | None, bool], list[DeviceId]]:
    """Return the devices whose facts are known by a trait, if one is given, and by being virtual or not."""
    rows = connection.execute(_traits_query(connection.dialect.name, trait)).all()
    return {(row[2] if trait else None, row[1]): row[0] for row in rows}


@cache
def _traits_query(dialect_name: str, trait: DeviceTrait | None) -> sa.Select[Any]:
    """Return the query of one row for each group: rows of a thousand devices would take longer to make."""
    listed = sa.func.json_agg if dialect_name == "postgresql" else sa.func.json_group_array
    groups = [devices.c.virtual] if trait is None else [devices.c.virtual, devices.c[trait]]
    query = sa.select(listed(devices.c.device_id, type_=sa.JSON()), *groups)
    return query.where(devices.c.facts_id.is_not(None)).group_by(*groups)
