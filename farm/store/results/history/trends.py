"""Series by model and device, and what ran in the cells of their points."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, Digest, FactsId, MatrixId, SeriesId
from farm.core.base.setting_values import SettingValue
from farm.core.devices.controls import ControlLevel
from farm.core.results.history.session_point import SessionPoint
from farm.database.rows import is_among, is_key_listed, to_record
from farm.database.tables import cells, devices, is_set, points, programs, series, variants
from farm.store.matrices.search import MatrixFilter, is_of_matching
from farm.store.results.history.points import within


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesDevice:
    """What the device of a series is now."""

    device_label: str | None
    device_model: str | None
    soc: str | None
    virtual: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesIdentity:
    """What a series runs, whatever the versions of its files."""

    #: None, as the recipe is, if the harness runs no model.
    model: str | None
    recipe: Mapping[str, str] | None
    backend: str
    #: Those that are not the harness's defaults.
    settings: Mapping[str, SettingValue]
    harness: str

    def setup(self) -> dict[str, Any]:
        """Return it by the names that documents have for it."""
        recipe = self.recipe or {}
        return {
            **{name: recipe.get(name) for name in ("precision", "format", "memory_format", "target")},
            "model": self.model,
            "backend": self.backend,
            "changed_settings": self.settings,
            "harness": self.harness,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendSeries:
    """A series whose points are asked for."""

    series_id: SeriesId
    device_id: DeviceId
    device: SeriesDevice
    identity: SeriesIdentity


class PointCell(NamedTuple):
    """What ran in a cell, and in its baseline."""

    cell_id: CellId
    label: str
    #: Name and digest of the model file; None if the harness runs no model.
    variant: str | None
    variant_digest: Digest | None
    program_digest: Digest
    baseline_label: str | None
    baseline_variant: str | None
    baseline_variant_digest: Digest | None
    baseline_program_digest: Digest | None


class SeriesPoint(NamedTuple):
    """A point that counts, with what ran in its cell. A tuple, because a trend has hundreds."""

    cell_id: CellId
    matrix_id: MatrixId
    device_id: DeviceId
    series_id: SeriesId
    baseline_series_id: SeriesId | None
    slot: int
    began_at: datetime
    ended_at: datetime
    rounds: int
    left_out: int
    time_ns: float
    se_time: float | None
    baseline_ns: float | None
    se_speedup: float | None
    facts_id: FactsId | None
    control_level: ControlLevel
    label: str
    variant: str | None
    variant_digest: Digest | None
    program_digest: Digest
    baseline_label: str | None
    baseline_variant: str | None
    baseline_variant_digest: Digest | None
    baseline_program_digest: Digest | None

    @classmethod
    def of(cls, point: SessionPoint, cell: PointCell) -> Self:
        """Return a point that is not stored yet."""
        records = (point, point.values, cell)
        return cls._make(
            next(getattr(own, name) for own in records if hasattr(own, name)) for name in cls._fields
        )


#: Of a part of a pattern of LIKE.
_ESCAPED = str.maketrans({character: f"/{character}" for character in "/%_"})


def _is_named(*, of_device: bool) -> sa.ColumnElement[bool]:
    """Return the condition that the label or the file's name at its newest point has the parameter `part`.

    With `of_device`, by the index of the newest points of the device in the parameter `device_id`.
    """
    part = sa.bindparam("part", type_=sa.Text())
    named = (
        sa.select(points.c.series_id)
        .join(cells, cells.c.cell_id == points.c.cell_id)
        .where(
            is_set(points.c.newest),
            sa.or_(
                cells.c.label.icontains(part, escape="/"),
                sa.exists().where(
                    variants.c.variant_id == cells.c.variant_id,
                    variants.c.name.icontains(part, escape="/"),
                ),
            ),
        )
    )
    if of_device:
        return series.c.series_id.in_(named.where(points.c.device_id == sa.bindparam("device_id")))
    return named.where(points.c.series_id == series.c.series_id).exists()


def is_measured_in(series_id: sa.ColumnElement[int], which: MatrixFilter) -> sa.ColumnElement[bool]:
    """Return the condition that a series in a column has a point of a matrix of a name or a person.

    The points of few matrices are read; where many match, a series soon has a point of one.
    """
    if which.matrix_ids is None:
        return sa.exists().where(points.c.series_id == series_id, is_of_matching(points.c.matrix_id, which))
    return series_id.in_(sa.select(points.c.series_id).where(points.c.matrix_id.in_(which.matrix_ids)))


_IDENTITY = series.c["series_id", "model", "recipe", "backend", "settings", "harness"]


# Built once, as the queries below are: that takes longer than the answer.
@cache
def _page_query(*filters: str, is_named: bool) -> sa.Select[Any]:
    """Return the query of the series behind a parameter whose columns `filters` are parameters, too."""
    conditions = [series.c[name] == sa.bindparam(name) for name in filters]
    if is_named:
        conditions.append(_is_named(of_device="device_id" in filters))
    return (
        sa.select(
            *_IDENTITY,
            series.c.device_id,
            devices.c.label.label("device_label"),
            *devices.c["device_model", "soc"],
            sa.func.coalesce(devices.c.virtual, sa.false()).label("virtual"),
        )
        .join(devices, devices.c.device_id == series.c.device_id)
        .where(series.c.series_id > sa.bindparam("after"), *conditions)
        .order_by(series.c.series_id)
        .limit(sa.bindparam("limit", type_=sa.Integer))
    )


def series_page(
    connection: Connection,
    *,
    device_id: DeviceId | None,
    model: str | None,
    harness: str | None = None,
    name_part: str | None = None,
    which: MatrixFilter | None = None,
    except_on: Collection[DeviceId] = (),
    after: SeriesId,
    limit: int,
) -> list[TrendSeries]:
    """Return the next series behind one, of a device, a model and a harness where they are given.

    Args:
        connection: the database.
        device_id: only of this device.
        model: only of this model.
        harness: only of this harness.
        name_part: only with this text in the label or the file's name at the newest point, in any case.
        which: only those that a matching matrix has points of.
        except_on: devices with points that are not stored yet: `name_part` and `which` do not restrict them.
        after: the one before.
        limit: at most this many.
    """
    filters = {"device_id": device_id, "model": model, "harness": harness}
    given = {name: value for name, value in filters.items() if value is not None}
    is_named = name_part is not None
    query = _page_query(*given, is_named=is_named and not except_on)
    restrictions = [] if which is None else [is_measured_in(series.c.series_id, which)]
    if except_on:
        if is_named:
            restrictions.append(_is_named(of_device=device_id is not None))
        is_excepted = series.c.device_id.in_(list(except_on))
        query = query.where(sa.or_(is_excepted, sa.and_(sa.true(), *restrictions)))
    elif restrictions:
        query = query.where(*restrictions)
    values = {**given, "after": after, "limit": limit}
    if name_part is not None:
        values["part"] = name_part.translate(_ESCAPED)
    rows = connection.execute(query, values).all()
    return [
        to_record(
            TrendSeries, row, device=to_record(SeriesDevice, row), identity=to_record(SeriesIdentity, row)
        )
        for row in rows
    ]


def identities_of_series(
    connection: Connection, series_ids: Collection[SeriesId]
) -> dict[SeriesId, SeriesIdentity]:
    """Return what series run."""
    query = _identities_query(connection.dialect.name)
    rows = connection.execute(query, {"series": json.dumps([*series_ids])}).all()
    return {row.series_id: to_record(SeriesIdentity, row) for row in rows}


@cache
def _identities_query(dialect_name: str) -> sa.Select[Any]:
    own = is_key_listed(dialect_name, series.c.series_id, sa.bindparam("series", type_=sa.Text()))
    return sa.select(*_IDENTITY).where(own)


_BASELINE, _ITS_VARIANT = cells.alias("baseline"), variants.alias("baseline_variant")
_ITS_PROGRAM = programs.alias("baseline_program")
_CELL_COLUMNS = {
    "cell_id": cells.c.cell_id,
    "label": cells.c.label,
    "variant": variants.c.name,
    "variant_digest": variants.c.digest,
    "program_digest": programs.c.digest,
    "baseline_label": _BASELINE.c.label,
    "baseline_variant": _ITS_VARIANT.c.name,
    "baseline_variant_digest": _ITS_VARIANT.c.digest,
    "baseline_program_digest": _ITS_PROGRAM.c.digest,
}


def _with_files(source: sa.FromClause) -> sa.FromClause:
    """Return rows of cells joined with all that `_CELL_COLUMNS` are of."""
    is_baseline = sa.and_(
        _BASELINE.c.matrix_id == cells.c.matrix_id, _BASELINE.c.cell_index == cells.c.baseline_index
    )
    return (
        source.join(programs, programs.c.program_id == cells.c.program_id)
        .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
        .outerjoin(_BASELINE, is_baseline)
        .outerjoin(_ITS_VARIANT, _ITS_VARIANT.c.variant_id == _BASELINE.c.variant_id)
        .outerjoin(_ITS_PROGRAM, _ITS_PROGRAM.c.program_id == _BASELINE.c.program_id)
    )


_CELLS_QUERY = sa.select(*(_CELL_COLUMNS[name].label(name) for name in PointCell._fields)).select_from(
    _with_files(cells)
)


def cells_of_points(connection: Connection, cell_ids: Collection[CellId]) -> dict[CellId, PointCell]:
    """Return what ran in cells."""
    query = _CELLS_QUERY.where(is_among(connection, cells.c.cell_id, cell_ids))
    return {row[0]: PointCell._make(row) for row in connection.execute(query).all()}


@cache
def _points_query(dialect_name: str) -> sa.Select[Any]:
    """Return the query of the points that count of the parameter `series`, with what ran in their cells."""
    own = is_key_listed(dialect_name, points.c.series_id, sa.bindparam("series", type_=sa.Text()))
    columns = ((points.c if name in points.c else _CELL_COLUMNS)[name] for name in SeriesPoint._fields)
    return (
        sa.select(*(column.label(name) for name, column in zip(SeriesPoint._fields, columns, strict=True)))
        .select_from(_with_files(points.join(cells, cells.c.cell_id == points.c.cell_id)))
        .where(own, *_is_shown())
    )


def points_of_series(
    connection: Connection,
    series_ids: Collection[SeriesId],
    *,
    since: datetime | None = None,
    which: MatrixFilter | None = None,
) -> list[SeriesPoint]:
    """Return the points of series that count and are `within`."""
    query = _points_query(connection.dialect.name)
    for condition in within(points, until=None, since=since, which=which):
        query = query.where(condition)
    rows = connection.execute(query, {"series": json.dumps([*series_ids])}).all()
    return [SeriesPoint._make(row) for row in rows]


def has_points(
    connection: Connection,
    series_ids: Collection[SeriesId],
    *,
    since: datetime | None = None,
    which: MatrixFilter | None = None,
) -> bool:
    """Tell whether series have any of `points_of_series`."""
    own = is_key_listed(connection.dialect.name, points.c.series_id, sa.bindparam("series", type_=sa.Text()))
    query = sa.select(points.c.cell_id).where(own, *_is_shown())
    query = query.where(*within(points, until=None, since=since, which=which)).limit(1)
    return connection.execute(query, {"series": json.dumps([*series_ids])}).first() is not None


def _is_shown() -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions that a point counts and is of no duplicate."""
    return points.c.rounds > 0, points.c.replica == 1
