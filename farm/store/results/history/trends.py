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
class TrendSeries:
    """A series whose points are asked for."""

    series_id: SeriesId
    device_id: DeviceId
    device: SeriesDevice
    identity: "SeriesIdentity"


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


class TrendPoint(NamedTuple):
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


@dataclass(frozen=True, slots=True)
class NamePart:
    """A text in the label or the file's name at the newest point of a series, in any case."""

    text: str
    #: Devices whose series are returned whatever they are named: they have points that are not stored yet.
    except_on: Collection[DeviceId] = ()

    def condition(self, device_id: DeviceId | None) -> sa.ColumnElement[bool]:
        """Return the condition on series: of a device, by the index of its newest points."""
        named = (
            sa.select(points.c.series_id)
            .join(cells, cells.c.cell_id == points.c.cell_id)
            .where(
                is_set(points.c.newest),
                sa.or_(
                    cells.c.label.icontains(self.text, autoescape=True),
                    sa.exists().where(
                        variants.c.variant_id == cells.c.variant_id,
                        variants.c.name.icontains(self.text, autoescape=True),
                    ),
                ),
            )
        )
        if device_id is None:
            has_it: sa.ColumnElement[bool] = named.where(points.c.series_id == series.c.series_id).exists()
        else:
            has_it = series.c.series_id.in_(named.where(points.c.device_id == device_id))
        return sa.or_(has_it, series.c.device_id.in_(list(self.except_on))) if self.except_on else has_it


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
def _page_query(*filters: str) -> sa.Select[Any]:
    """Return the query of the series behind a parameter whose columns `filters` are parameters, too."""
    return (
        sa.select(
            *_IDENTITY,
            series.c.device_id,
            devices.c.label.label("device_label"),
            *devices.c["device_model", "soc"],
            sa.func.coalesce(devices.c.virtual, sa.false()).label("virtual"),
        )
        .join(devices, devices.c.device_id == series.c.device_id)
        .where(series.c.series_id > sa.bindparam("after"))
        .where(*(series.c[name] == sa.bindparam(name) for name in filters))
        .order_by(series.c.series_id)
        .limit(sa.bindparam("limit", type_=sa.Integer))
    )


def series_page(
    connection: Connection,
    *,
    device_id: DeviceId | None,
    model: str | None,
    harness: str | None = None,
    named: NamePart | None = None,
    which: MatrixFilter | None = None,
    except_on: Collection[DeviceId] = (),
    after: SeriesId,
    limit: int,
) -> list[TrendSeries]:
    """Return the next series behind one, of a device, a model and a harness where they are given.

    With `which`, only those that a matching matrix has points of, and all on the devices `except_on`.
    """
    filters = {"device_id": device_id, "model": model, "harness": harness}
    given = {name: value for name, value in filters.items() if value is not None}
    query = _page_query(*given)
    if named is not None:
        query = query.where(named.condition(device_id))
    if which is not None:
        is_measured = is_measured_in(series.c.series_id, which)
        is_pending = series.c.device_id.in_(list(except_on))
        query = query.where(sa.or_(is_measured, is_pending) if except_on else is_measured)
    rows = connection.execute(query, {**given, "after": after, "limit": limit}).all()
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
    columns = ((points.c if name in points.c else _CELL_COLUMNS)[name] for name in TrendPoint._fields)
    return (
        sa.select(*(column.label(name) for name, column in zip(TrendPoint._fields, columns, strict=True)))
        .select_from(_with_files(points.join(cells, cells.c.cell_id == points.c.cell_id)))
        .where(own, points.c.rounds > 0, points.c.replica == 1)
    )


def points_of_series(
    connection: Connection,
    series_ids: Collection[SeriesId],
    *,
    since: datetime | None = None,
    which: MatrixFilter | None = None,
) -> list[TrendPoint]:
    """Return the points of series that count and are `within`."""
    query = _points_query(connection.dialect.name)
    for condition in within(points, until=None, since=since, which=which):
        query = query.where(condition)
    rows = connection.execute(query, {"series": json.dumps([*series_ids])}).all()
    return [TrendPoint._make(row) for row in rows]
