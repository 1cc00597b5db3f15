"""Series by the labels of their cells, and the matrices in which two of them were measured on one device."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId, SeriesId
from farm.database.rows import is_among, join_limited
from farm.database.tables import cells, is_set, measurements, points, variants
from farm.store.matrices.search import MatrixFilter
from farm.store.results.history.points import PairCell, PairKey, asked_pairs, within
from farm.store.results.history.stale_points import MeasuredSession, is_of_sessions


class SeriesSide(NamedTuple):
    """A cell that can be one side of a comparison, and the series that it was measured as."""

    device_id: DeviceId
    model: str | None
    label: str
    series_id: SeriesId
    matrix_id: MatrixId
    cell_id: CellId


_SIDE = (cells.c.device_id, variants.c.model, cells.c.label)


def newest_sides(
    connection: Connection, device_ids: Collection[DeviceId], *, labels: Collection[str] | None
) -> list[SeriesSide]:
    """Return the cells of the newest points of series on devices; without `labels`, whatever theirs."""
    query = (
        sa.select(*_SIDE, points.c.series_id, points.c.matrix_id, points.c.cell_id)
        .select_from(points)
        .join(cells, cells.c.cell_id == points.c.cell_id)
        .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
        .where(
            is_among(connection, points.c.device_id, device_ids),
            is_set(points.c.newest),
            points.c.replica == 1,
        )
    )
    return _sides(connection, query, labels)


def measured_sides(
    connection: Connection,
    sessions: Collection[MeasuredSession],
    *,
    labels: Collection[str] | None,
    since: datetime | None = None,
) -> list[SeriesSide]:
    """Return the cells of sessions with a measurement, at a time or later; points need not be stored."""
    series_id = (
        sa.select(measurements.c.series_id)
        .where(
            measurements.c.cell_id == cells.c.cell_id,
            measurements.c.accepted,
            sa.true() if since is None else measurements.c.measured_at >= since,
        )
        .order_by(measurements.c.measurement_id.desc())
        .limit(1)
        .correlate(cells)
        .scalar_subquery()
    )
    query = (
        sa.select(*_SIDE, series_id.label("series_id"), cells.c.matrix_id, cells.c.cell_id)
        .select_from(cells)
        .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
        .where(is_of_sessions(connection, sessions), cells.c.replica == 1)
    )
    found = query.subquery()
    return _sides(connection, sa.select(found).where(found.c.series_id.is_not(None)), labels)


def _sides(
    connection: Connection, query: sa.Select[tuple[object, ...]], labels: Collection[str] | None
) -> list[SeriesSide]:
    if labels is not None:
        query = query.where(query.selected_columns.label.in_(list(labels)))
    return [SeriesSide._make(row) for row in connection.execute(query).all()]


def cells_of_sides(
    connection: Connection,
    keys: Sequence[PairKey],
    *,
    until: MatrixId | None,
    since: datetime | None,
    which: MatrixFilter | None,
    limit: int,
) -> list[PairCell]:
    """Return the cells of series in matrices that measured another one, too; like `cells_of_pairs`."""
    asked = asked_pairs(connection, keys)
    own, other, its = points.alias("own"), points.alias("other"), points.alias("its")
    measured_both = sa.exists().where(
        other.c.series_id == asked.c.baseline_series_id,
        other.c.matrix_id == own.c.matrix_id,
        other.c.replica == 1,
    )
    newest = (
        sa.select(own.c.cell_id)
        .where(
            own.c.series_id == asked.c.series_id,
            own.c.replica == 1,
            measured_both.correlate(asked, own),
            *within(own, until=until, since=since, which=which),
        )
        .order_by(own.c.matrix_id.desc(), own.c.cell_id.desc())
        .limit(limit)
    )
    query = (
        sa.select(
            asked.c.number, points.c.matrix_id, points.c.cell_id, its.c.cell_id.label("baseline_cell_id")
        )
        .select_from(join_limited(connection, asked, newest, points.c.cell_id))
        .join(
            its,
            sa.and_(
                its.c.series_id == asked.c.baseline_series_id,
                its.c.matrix_id == points.c.matrix_id,
                its.c.replica == 1,
            ),
        )
        .order_by(points.c.matrix_id.desc(), points.c.cell_id.desc(), its.c.cell_id)
    )
    return [
        PairCell(matrix_id=matrix_id, cell_id=cell_id, key=keys[number], baseline_cell_id=baseline_cell_id)
        for number, matrix_id, cell_id, baseline_cell_id in connection.execute(query).all()
    ]


def find_side(connection: Connection, cell_id: CellId) -> SeriesSide | None:
    """Return the newest side of the series that a cell was measured as; None if it was not measured."""
    place = sa.select(cells.c.matrix_id, cells.c.device_id).where(cells.c.cell_id == cell_id)
    for matrix_id, device_id in connection.execute(place).all():
        for side in measured_sides(connection, [MeasuredSession(matrix_id, device_id)], labels=None):
            if side.cell_id == cell_id:
                return side
    return None
