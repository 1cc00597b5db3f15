"""Points of series: stored by session, read by pair of series, by series, and over devices."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId, SeriesId
from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Recipe
from farm.core.results.history.session_point import PointValues, SessionPoint
from farm.core.results.series import slot_number
from farm.database.rows import is_among, is_key_among, join_limited, rows_query, rows_text
from farm.database.tables import cells, is_set, measurements, points, series
from farm.database.transaction import Tx
from farm.store.matrices.search import MatrixFilter, is_of_matching
from farm.store.results.history.stale_points import MeasuredSession, devices_by_matrix, is_of_sessions

_RECIPE = TypeAdapter(Recipe)
_SETTINGS = TypeAdapter(dict[str, SettingValue])
#: JSON as text: devices have the same, which is read once.
_WORK_QUERY = sa.select(
    series.c.series_id,
    series.c.model,
    sa.cast(series.c.recipe, sa.Text),
    series.c.backend,
    series.c.harness,
    sa.cast(series.c.settings, sa.Text),
)
_NEWEST = is_set(points.c.newest)
_NEWEST_QUERY = sa.select(
    points.c.device_id,
    points.c.series_id,
    points.c.baseline_series_id,
    points.c.replica,
    points.c.rounds,
    points.c.matrix_id,
    points.c.cell_id,
).where(_NEWEST)


_PAIR_COLUMNS = [
    points.c[name]
    for name in ("device_id", "baseline_series_id", "series_id", "replica", "cell_id", "matrix_id")
]


class PairKey(NamedTuple):
    """What is compared on a device; `baseline_series_id` is 0 where it is compared with nothing.

    A plain tuple, as its cells are: a page sorts hundreds and reads thousands.
    """

    device_id: DeviceId
    baseline_series_id: int
    series_id: SeriesId
    #: Duplicates of a baseline are one pair, however many there are.
    is_duplicate: bool


class PairCell(NamedTuple):
    """A cell with a measurement, and the pair that it is one side of."""

    cell_id: CellId
    matrix_id: MatrixId
    key: PairKey
    #: The cell that it is compared with; None: the baseline that its matrix planned.
    baseline_cell_id: CellId | None = None


def slots_of_series(connection: Connection, series_ids: Collection[SeriesId]) -> dict[SeriesId, int]:
    """Return the slot of each of these series."""
    query = _WORK_QUERY.where(is_key_among(connection, series.c.series_id, series_ids))
    return {series_id: _slot(*work) for series_id, *work in connection.execute(query).all()}


@lru_cache(maxsize=4096)
def _slot(model: str | None, recipe: str | None, backend: str, harness: str, settings: str) -> int:
    """Return the slot of what a series measures, which is the same on all devices, from texts in JSON."""
    return slot_number(
        model=model,
        recipe=None if recipe is None else _RECIPE.validate_json(recipe, strict=False),
        backend=backend,
        harness=harness,
        settings=_SETTINGS.validate_json(settings),
    )


#: Columns of the table that are fields of a `SessionPoint`; the others are fields of its values.
_OWN_NAMES = [name for name in SessionPoint.__dataclass_fields__ if name != "values"]
#: A series, what it is compared with, and its replica: of each, one point is the newest.
_Key = tuple[SeriesId, SeriesId | None, int]
#: Whether it has rounds that count, its matrix and its cell: the highest one of a pair is the newest.
_Rank = tuple[bool, MatrixId, CellId]


def replace_points(tx: Tx, new_points: Mapping[MeasuredSession, Sequence[SessionPoint]]) -> None:
    """Store the points of sessions of different devices in place of those that they have."""
    if not new_points:
        return
    connection = tx.connection
    newest_by_device = _newest_of_devices(connection, {session.device_id for session in new_points})
    for matrix_id, device_ids in devices_by_matrix(new_points).items():
        of_sessions = sa.and_(points.c.matrix_id == matrix_id, points.c.device_id.in_(device_ids))
        connection.execute(points.delete().where(of_sessions))
    newest = _Newest()
    for (matrix_id, device_id), own in new_points.items():
        newest.add(connection, matrix_id, own, before=newest_by_device.get(device_id, {}))
    # First those that are newest no more: of each pair one is.
    for is_newest, cell_ids in ((False, newest.no_more), (True, newest.again)):
        if cell_ids:
            which = is_among(connection, points.c.cell_id, cell_ids)
            connection.execute(points.update().where(which).values(newest=is_newest))
    rows = [
        {
            **{name: getattr(point, name) for name in _OWN_NAMES},
            **{name: getattr(point.values, name) for name in PointValues.__dataclass_fields__},
            "newest": point.cell_id in newest.new,
        }
        for own in new_points.values()
        for point in own
    ]
    if rows:
        connection.execute(points.insert(), rows)


class _Newest:
    """Which points become the newest of their pairs, and which are it no more."""

    def __init__(self) -> None:
        self.new: set[CellId] = set()
        self.again: set[CellId] = set()
        self.no_more: set[CellId] = set()

    def add(
        self,
        connection: Connection,
        matrix_id: MatrixId,
        new_points: Sequence[SessionPoint],
        *,
        before: Mapping[_Key, _Rank],
    ) -> None:
        """Add a session, whose stored points are removed; `before` are the newest of its device before."""
        own = {key for key, (_, matrix, _) in before.items() if matrix == matrix_id}
        ranks: dict[_Key, _Rank] = {}
        for point in new_points:
            key, of_point = _key_of(point), (point.values.rounds > 0, point.matrix_id, point.cell_id)
            ranks[key] = max(of_point, ranks.get(key, of_point))
        for key in {*ranks, *own}:
            rank: _Rank | None = ranks.get(key)
            has_rounds = rank is not None and rank[0]
            # Of a pair that was newest here and has no rounds any more, an older one may be it.
            other = (None if has_rounds else _find_newest(connection, key)) if key in own else before.get(key)
            if rank is not None and (other is None or rank > other):
                self.new.add(rank[2])
                if other is not None and key not in own:
                    self.no_more.add(other[2])
            elif key in own and other is not None:
                self.again.add(other[2])


def _key_of(point: SessionPoint) -> _Key:
    return point.series_id, point.baseline_series_id, point.replica


def _newest_of_devices(
    connection: Connection, device_ids: Collection[DeviceId]
) -> dict[DeviceId, dict[_Key, _Rank]]:
    query = _NEWEST_QUERY.where(points.c.device_id.in_(list(device_ids)))
    newest: defaultdict[DeviceId, dict[_Key, _Rank]] = defaultdict(dict)
    for device_id, *key, rounds, matrix_id, cell_id in connection.execute(query).all():
        series_id, baseline_series_id, replica = key
        newest[device_id][series_id, baseline_series_id, replica] = (rounds > 0, matrix_id, cell_id)
    return newest


def _find_newest(connection: Connection, key: _Key) -> _Rank | None:
    series_id, baseline_series_id, replica = key
    of_pair = (
        sa.select(points.c.rounds, points.c.matrix_id, points.c.cell_id)
        .where(
            points.c.series_id == series_id,
            points.c.baseline_series_id.is_not_distinct_from(baseline_series_id),
            points.c.replica == replica,
        )
        .order_by(points.c.matrix_id.desc(), points.c.cell_id.desc())
        .limit(1)
    )
    for query in (of_pair.where(points.c.rounds > 0), of_pair):
        row = connection.execute(query).one_or_none()
        if row is not None:
            return row.rounds > 0, row.matrix_id, row.cell_id
    return None


def newest_cells(
    connection: Connection,
    device_ids: Collection[DeviceId],
    *,
    model: str | None = None,
    since: datetime | None = None,
    which: MatrixFilter | None = None,
) -> list[PairCell]:
    """Return the newest cell of each pair of series that is compared on some devices.

    With `which`, only of pairs that a matching matrix has points of; the cell may be of another one.
    """
    on_devices = is_among(connection, points.c.device_id, device_ids)
    query = sa.select(*_PAIR_COLUMNS).where(on_devices, _NEWEST, points.c.baseline_series_id.is_not(None))
    if model is not None:
        # Not by a join: SQLite would read the points of all series of the model, on whatever device.
        own_model = sa.select(series.c.model).where(series.c.series_id == points.c.series_id)
        query = query.where(own_model.scalar_subquery() == model)
    if since is not None:
        query = query.where(points.c.ended_at >= since)
    if which is not None:
        own = points.alias("own")
        query = query.where(
            sa.exists()
            .where(
                own.c.series_id == points.c.series_id,
                own.c.baseline_series_id == points.c.baseline_series_id,
                is_of_matching(own.c.matrix_id, which),
            )
            .correlate(points)
        )
    return [_pair_cell(row) for row in connection.execute(query).all()]


def cells_of_pairs(
    connection: Connection,
    keys: Sequence[PairKey],
    *,
    until: MatrixId | None,
    since: datetime | None,
    which: MatrixFilter | None,
    limit: int,
) -> list[PairCell]:
    """Return the cells of pairs of series, newest first: of each `limit` at most that are `within`."""
    asked, own = asked_pairs(connection, keys), points.alias("own")
    newest = (
        sa.select(own.c.cell_id)
        .where(
            own.c.series_id == asked.c.series_id,
            own.c.baseline_series_id == asked.c.baseline_series_id,
            (own.c.replica > 1) == (asked.c.is_duplicate == 1),
            *within(own, until=until, since=since, which=which),
        )
        .order_by(own.c.matrix_id.desc(), own.c.cell_id.desc())
        .limit(limit)
    )
    query = (
        sa.select(asked.c.number, points.c.matrix_id, points.c.cell_id)
        .select_from(join_limited(connection, asked, newest, points.c.cell_id))
        .order_by(points.c.matrix_id.desc(), points.c.cell_id.desc())
    )
    return [
        PairCell(matrix_id=matrix_id, cell_id=cell_id, key=keys[number])
        for number, matrix_id, cell_id in connection.execute(query).all()
    ]


_ASKED = [
    sa.column(name, sa.BigInteger) for name in ("number", "series_id", "baseline_series_id", "is_duplicate")
]


def asked_pairs(connection: Connection, keys: Sequence[PairKey]) -> sa.Subquery:
    """Return pairs as a table for one statement over all; `number` is the place of each in `keys`."""
    rows = [
        (number, key.series_id, key.baseline_series_id, int(key.is_duplicate))
        for number, key in enumerate(keys)
    ]
    return rows_query(connection.dialect.name, _ASKED, rows_text(rows)).subquery("asked")


def within(
    of: sa.FromClause, *, until: MatrixId | None, since: datetime | None, which: MatrixFilter | None
) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the conditions of points that are considered: of matrices up to one, since a time, that match.

    Args:
        of: the table of points, or an alias of it.
        until: the last matrix.
        since: only points with a measurement at this time or later.
        which: only of these matrices.
    """
    if until is not None:
        yield of.c.matrix_id <= until
    if since is not None:
        yield of.c.ended_at >= since
    if which is not None:
        yield is_of_matching(of.c.matrix_id, which)


def _pair_cell(row: sa.Row[*tuple[Any, ...]]) -> PairCell:
    key = PairKey(
        device_id=row.device_id,
        baseline_series_id=row.baseline_series_id,
        series_id=row.series_id,
        is_duplicate=row.replica > 1,
    )
    return PairCell(cell_id=row.cell_id, matrix_id=row.matrix_id, key=key)


def measured_pairs(
    connection: Connection,
    sessions: Collection[MeasuredSession],
    *,
    cell_id: CellId | None = None,
    model: str | None = None,
    since: datetime | None = None,
) -> list[PairCell]:
    """Return the compared cells of sessions with the series that they were measured as.

    Args:
        cell_id: only this cell.
        model: only of this model.
        since: only cells with a measurement at this time or later.
    """
    baseline = cells.alias("baseline")
    own = _series_of_cell(cells)
    its = _series_of_cell(baseline)
    query = (
        sa.select(
            cells.c.cell_id,
            cells.c.matrix_id,
            cells.c.device_id,
            cells.c.replica,
            own.label("series_id"),
            its.label("baseline_series_id"),
        )
        .join(
            baseline,
            sa.and_(
                baseline.c.matrix_id == cells.c.matrix_id, baseline.c.cell_index == cells.c.baseline_index
            ),
        )
        .where(is_of_sessions(connection, sessions))
    )
    if cell_id is not None:
        query = query.where(cells.c.cell_id == cell_id)
    if since is not None:
        query = query.where(
            sa.exists()
            .where(measurements.c.cell_id == cells.c.cell_id, measurements.c.measured_at >= since)
            .correlate(cells)
        )
    found = query.subquery()
    query = sa.select(found).where(found.c.series_id.is_not(None), found.c.baseline_series_id.is_not(None))
    if model is not None:
        query = query.join(series, series.c.series_id == found.c.series_id).where(series.c.model == model)
    return [_pair_cell(row) for row in connection.execute(query)]


def _series_of_cell(of: sa.FromClause) -> sa.ScalarSelect[int]:
    return (
        sa.select(measurements.c.series_id)
        .where(measurements.c.cell_id == of.c.cell_id, measurements.c.accepted)
        .order_by(measurements.c.measurement_id.desc())
        .limit(1)
        .correlate(of)
        .scalar_subquery()
    )


def find_pair(connection: Connection, cell_id: CellId) -> PairKey | None:
    """Return the pair that the point of a cell is of; None without a point, or a baseline."""
    query = sa.select(points).where(points.c.cell_id == cell_id, points.c.baseline_series_id.is_not(None))
    row = connection.execute(query).one_or_none()
    return None if row is None else _pair_cell(row).key
