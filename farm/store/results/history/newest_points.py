"""The newest points of comparisons over devices: read from one index, and added up by the database."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.base.microseconds import to_microseconds
from farm.core.results.history.session_point import SessionPoint
from farm.core.results.statistics.log_sums import LogSums
from farm.database.rows import is_among, rows_query, rows_text
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


class PointPrecision(NamedTuple):
    """How well the rounds of a point agree."""

    device_id: DeviceId
    rounds: int
    #: Of the mean logarithm of the speedup; None of fewer than two rounds.
    se_speedup: float | None

    @classmethod
    def of(cls, point: SessionPoint) -> Self:
        """Return that of a point that is not stored."""
        return cls(point.device_id, point.values.rounds, point.values.se_speedup)


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
    """What devices can have in common: a column of theirs, or what no other one has."""

    NAME = "name"
    DEVICE_MODEL = "device_model"
    SOC = "soc"
    ANDROID = "android"


class DeviceGroup(NamedTuple):
    """What devices have in common: a trait, or None if they are grouped by none, and being virtual or not."""

    trait: str | None
    virtual: bool


class NewestSums(NamedTuple):
    """The newest numbers of a comparison on the devices of a group, added up."""

    sums: LogSums
    #: The last of its cells.
    cell_id: CellId
    #: The end of the last session.
    ended_us: int


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


def _found_comparisons(dialect_name: str) -> sa.CTE:
    """Return a cell of each comparison: a step into the index for each, however many devices there are."""
    slots = (points.c.slot, points.c.baseline_slot)
    first = sa.select(points.c.cell_id, *slots).where(_COMPARED).order_by(*slots).limit(1)
    found = sa.select(first.subquery()).cte("found", recursive=True)
    if dialect_name == "postgresql":
        following = first.where(sa.tuple_(*slots) > sa.tuple_(found.c.slot, found.c.baseline_slot))
        next_point = following.correlate(found).lateral("next_point")
        return found.union_all(sa.select(next_point).select_from(found.join(next_point, sa.true())))

    # SQLite would seek a pair that is greater than another by its first column only, and read all devices.
    def first_where(*conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
        query = sa.select(points.c.cell_id).where(_COMPARED, *conditions).order_by(*slots).limit(1)
        return query.correlate(found).scalar_subquery()

    cell_id = sa.func.coalesce(
        first_where(points.c.slot == found.c.slot, points.c.baseline_slot > found.c.baseline_slot),
        first_where(points.c.slot > found.c.slot),
    )
    its = points.alias("next_point")
    return found.union_all(
        sa.select(its.c.cell_id, its.c.slot, its.c.baseline_slot).select_from(
            found.join(its, its.c.cell_id == cell_id)
        )
    )


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


# Statements are built once: that takes longer than their answers.
@cache
def _comparisons_query(dialect_name: str) -> sa.Select[Any]:
    return _names_query(_found_comparisons(dialect_name))


def list_comparisons(connection: Connection) -> list[Comparison]:
    """Return the comparisons that some device has newest points of."""
    return [_comparison(row) for row in connection.execute(_comparisons_query(connection.dialect.name)).all()]


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


def _column(trait: DeviceTrait) -> sa.ColumnElement[Any]:
    if trait is DeviceTrait.NAME:
        return sa.func.coalesce(devices.c.label, devices.c.device_id)
    return devices.c[trait]


def newest_sums(
    connection: Connection,
    slots: SlotPair,
    trait: DeviceTrait | None,
    *,
    since: datetime | None = None,
    without: Collection[DeviceId] = (),
) -> tuple[dict[DeviceGroup, NewestSums], dict[DeviceGroup, int]]:
    """Return the newest numbers of a comparison over the devices of each group whose facts are known.

    Beside them: how many such devices each group has, whether they measured it or not.

    The database adds them up: rows of a thousand devices would take several times as long to make.

    Args:
        connection: the database.
        slots: the comparison.
        trait: what devices are grouped by, besides being virtual or not.
        since: only of sessions that ended since then.
        without: devices that do not count.
    """
    query = _sums_query(trait, since is not None, bool(without))
    asked = {**slots._asdict(), "since": since, "without": [*without]}
    found: dict[DeviceGroup, NewestSums] = {}
    known: dict[DeviceGroup, int] = {}
    for count, cell_id, ended_us, virtual, trait_of, *sums in connection.execute(query, asked).all():
        group = DeviceGroup(trait_of, virtual)
        known[group] = count
        if cell_id is not None:
            found[group] = NewestSums(LogSums(*sums), cell_id, ended_us)
    return found, known


@cache
def _sums_query(trait: DeviceTrait | None, has_since: bool, has_without: bool) -> sa.Select[Any]:
    compared = sa.and_(
        _COMPARED,
        points.c.device_id == devices.c.device_id,
        points.c.slot == sa.bindparam("slot"),
        points.c.baseline_slot == sa.bindparam("baseline_slot"),
    )
    if has_since:
        compared = sa.and_(compared, points.c.ended_at >= sa.bindparam("since"))
    time, baseline = sa.func.ln(points.c.time_ns), sa.func.ln(points.c.baseline_ns)
    logs = (
        sa.select(
            points.c.cell_id,
            sa.type_coerce(points.c.ended_at, sa.BigInteger).label("ended_us"),
            devices.c.virtual,
            (sa.null() if trait is None else _column(trait)).label("trait"),
            (baseline - time).label("speedup"),
            time.label("time"),
            baseline.label("baseline"),
        )
        # All devices, so that one statement counts those that have not measured it, too.
        .select_from(devices.outerjoin(points, compared))
        .where(devices.c.facts_id.is_not(None))
    )
    if has_without:
        logs = logs.where(devices.c.device_id.not_in(sa.bindparam("without", expanding=True)))
    of = logs.subquery()
    return sa.select(
        sa.func.count(),
        sa.func.max(of.c.cell_id),
        sa.func.max(of.c.ended_us),
        of.c.virtual,
        of.c.trait,
        # The fields of `LogSums`.
        sa.func.count(of.c.cell_id),
        sa.func.sum(of.c.speedup),
        sa.func.sum(of.c.speedup * of.c.speedup),
        sa.func.min(of.c.speedup),
        sa.func.max(of.c.speedup),
        sa.func.sum(of.c.time),
        sa.func.sum(of.c.baseline),
    ).group_by(of.c.virtual, of.c.trait)


def count_devices_with_model(
    connection: Connection,
    model: str | None,
    trait: DeviceTrait | None,
    *,
    besides: SlotPair,
    since: datetime | None = None,
    without: Collection[DeviceId] = (),
) -> dict[DeviceGroup, int]:
    """Return the number of devices of each group with newest points of a model, but not of one comparison.

    Further arguments are those of `newest_sums`.
    """
    newest = sa.and_(
        _COMPARED,
        points.c.device_id == devices.c.device_id,
        sa.true() if since is None else points.c.ended_at >= since,
    )
    of_model = (
        sa.exists()
        .where(newest)
        .where(series.c.series_id == points.c.series_id, series.c.model.is_not_distinct_from(model))
    )
    of_slots = sa.exists().where(
        newest, points.c.slot == besides.slot, points.c.baseline_slot == besides.baseline_slot
    )
    groups = [devices.c.virtual, *([] if trait is None else [_column(trait)])]
    query = (
        sa.select(sa.func.count(), *groups)
        .where(devices.c.facts_id.is_not(None), devices.c.device_id.not_in(list(without)))
        .where(~of_slots, of_model)
        .group_by(*groups)
    )
    rows = connection.execute(query).all()
    return {DeviceGroup(row[2] if trait else None, row[1]): row[0] for row in rows}


def devices_with_model(
    connection: Connection, model: str | None, *, among: Collection[DeviceId], since: datetime | None
) -> set[DeviceId]:
    """Return those devices that have newest points of any comparison of a model."""
    query = (
        sa.select(points.c.device_id)
        .distinct()
        .join(series, series.c.series_id == points.c.series_id)
        .where(_COMPARED, points.c.device_id.in_(list(among)))
        .where(series.c.model.is_not_distinct_from(model))
    )
    if since is not None:
        query = query.where(points.c.ended_at >= since)
    return {DeviceId(device_id) for device_id in connection.execute(query).scalars()}


def compared_on_devices(
    connection: Connection,
    pairs: Collection[SlotPair],
    *,
    since: datetime | None,
    without: Collection[DeviceId],
) -> set[tuple[DeviceId, SlotPair]]:
    """Return on which devices there are newest points of these comparisons; arguments as of `newest_sums`."""
    found = set()
    for slots in pairs:
        query = sa.select(points.c.device_id).where(
            _COMPARED, points.c.slot == slots.slot, points.c.baseline_slot == slots.baseline_slot
        )
        if since is not None:
            query = query.where(points.c.ended_at >= since)
        found |= {(DeviceId(device_id), slots) for device_id in connection.execute(query).scalars()}
    return {(device_id, slots) for device_id, slots in found if device_id not in without}


def precisions_of_points(
    connection: Connection, cell_ids: Collection[CellId]
) -> dict[tuple[CellId, int | None], PointPrecision]:
    """Return how well the rounds of stored points agree, by their cells and baselines' slots."""
    query = sa.select(
        points.c.cell_id, points.c.baseline_slot, points.c.device_id, points.c.rounds, points.c.se_speedup
    )
    rows = connection.execute(query.where(is_among(connection, points.c.cell_id, cell_ids))).all()
    return {(cell_id, slot): PointPrecision(*precision) for cell_id, slot, *precision in rows}


def devices_by_group(connection: Connection, trait: DeviceTrait | None) -> dict[DeviceGroup, list[DeviceId]]:
    """Return the devices whose facts are known by a trait, if one is given, and by being virtual or not."""
    rows = connection.execute(_traits_query(connection.dialect.name, trait)).all()
    return {DeviceGroup(row[2] if trait else None, row[1]): row[0] for row in rows}


@cache
def _traits_query(dialect_name: str, trait: DeviceTrait | None) -> sa.Select[Any]:
    """Return the query of one row for each group: rows of a thousand devices would take longer to make."""
    listed = sa.func.json_agg if dialect_name == "postgresql" else sa.func.json_group_array
    groups = [devices.c.virtual] if trait is None else [devices.c.virtual, _column(trait)]
    query = sa.select(listed(devices.c.device_id, type_=sa.JSON()), *groups)
    return query.where(devices.c.facts_id.is_not(None)).group_by(*groups)
