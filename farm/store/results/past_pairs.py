"""Measurements of pairs in earlier matrices, and the A/A pairs of devices."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, Digest, FactsId, MatrixId, SeriesId
from farm.core.devices.controls import ControlLevel
from farm.core.runs.measurement import Quality, SampleKind
from farm.database.rows import is_among, is_key_among, join_limited, rows_query, rows_text
from farm.database.tables import cells, measurements, points, series
from farm.store.results.history.session_starts import cells_of_sessions
from farm.store.results.history.stale_points import MeasuredSession, pending_sessions
from farm.store.results.measurements import is_accepted, with_enums


class PastMeasurement(NamedTuple):
    """An accepted measurement of an earlier matrix."""

    matrix_id: MatrixId
    cell_id: CellId
    series_id: SeriesId
    round: int
    block: int
    repeat: int
    value_ns: float
    clock_step_ns: int
    facts_id: FactsId | None
    start_skin_c: float | None
    start_battery_c: float | None
    boot_id: str | None
    start_uptime_s: float | None
    variant_digest: Digest | None
    program_digest: Digest
    kind: SampleKind
    quality: Quality
    control_level: ControlLevel


_COLUMNS = [(cells if name == "matrix_id" else measurements).c[name] for name in PastMeasurement._fields]


class SeriesPast(NamedTuple):
    """The matrices before one that measured two series, both; twice the same one: that measured it."""

    series_id: SeriesId
    other_series_id: SeriesId
    before: MatrixId


#: The most steps from one matrix to the next where matrices measured one of two series without the other.
MAX_STEPS = 100


def past_measurements(
    connection: Connection, asked: Collection[SeriesPast], *, matrices: int
) -> dict[SeriesPast, list[Sequence[PastMeasurement]]]:
    """Return the accepted measurements of series by matrix, the newest first; of each series oldest first.

    Each answer is the same whichever others are asked for. Matrices are found by points, or are not computed
    yet, so older ones cost nothing.

    Args:
        connection: the database.
        asked: the series, and the matrix before which their past ends.
        matrices: how many of each, the newest ones.
    """
    device_by_series = _devices(connection, {own.series_id for own in asked})
    pending: defaultdict[DeviceId, list[MatrixId]] = defaultdict(list)
    for matrix_id, device_id in pending_sessions(connection, {*device_by_series.values()}):
        pending[device_id].append(matrix_id)
    found: dict[SeriesPast, list[Sequence[PastMeasurement]]] = {own: [] for own in asked}
    below = {own: own.before for own in found}
    while below:
        most = {own: matrices - len(found[own]) for own in below}
        stored = _stored_cells(connection, [(own, before, most[own]) for own, before in below.items()])
        considered: dict[SeriesPast, list[MatrixId]] = {}
        sessions: set[MeasuredSession] = set()
        for own, before in below.items():
            device_id = device_by_series[own.series_id]
            others = {matrix_id for matrix_id in pending[device_id] if matrix_id < before}
            considered[own] = sorted({*stored[own], *others}, reverse=True)[: most[own]]
            uncomputed = others.intersection(considered[own])
            sessions |= {MeasuredSession(matrix_id, device_id) for matrix_id in uncomputed}
        cell_ids = {cell_id for by_matrix in stored.values() for own in by_matrix.values() for cell_id in own}
        cell_ids |= {cell.cell_id for cell in cells_of_sessions(connection, sessions)}
        measured = _measured(connection, cell_ids)
        for own, matrix_ids in considered.items():
            for matrix_id in matrix_ids:
                sides = [measured[matrix_id, series_id] for series_id in {*own[:2]}]
                if all(sides):
                    found[own].append([measurement for side in sides for measurement in side])
        # Points that changed since, and sessions without points, may be of neither: then more are looked for.
        below = {
            own: matrix_ids[-1]
            for own, matrix_ids in considered.items()
            if len(matrix_ids) == most[own] and len(found[own]) < matrices
        }
    return found


def _devices(connection: Connection, series_ids: Collection[SeriesId]) -> dict[SeriesId, DeviceId]:
    query = sa.select(series.c.series_id, series.c.device_id)
    rows = connection.execute(query.where(is_key_among(connection, series.c.series_id, series_ids)))
    return {row.series_id: row.device_id for row in rows}


_WALK_COLUMNS = [
    sa.column(name, sa.BigInteger) for name in ("number", "series_id", "other_series_id", "below", "most")
]


def _stored_cells(
    connection: Connection, asked: Sequence[tuple[SeriesPast, MatrixId, int]]
) -> dict[SeriesPast, dict[MatrixId, list[CellId]]]:
    """Return the cells of points of the newest matrices below one that have both series, a number of each."""
    rows = [(number, *own[:2], below, most) for number, (own, below, most) in enumerate(asked)]
    found: dict[SeriesPast, dict[MatrixId, list[CellId]]] = {own: {} for own, _, _ in asked}
    query = _stored_cells_query(connection.dialect.name)
    for number, matrix_id, cell_id in connection.execute(query, {"rows": rows_text(rows)}).all():
        found[asked[number][0]].setdefault(matrix_id, []).append(cell_id)
    return found


@cache
def _stored_cells_query(dialect_name: str) -> sa.Select[Any]:
    """Return the one statement of `_stored_cells`: to build it takes longer than to run it for a few series.

    Each step looks up the newest matrix of either series below the lower one of the last two.
    """
    start = rows_query(dialect_name, _WALK_COLUMNS, "[]").subquery()

    def newest(series_id: sa.ColumnElement[int], below: sa.ColumnElement[int]) -> sa.ScalarSelect[Any]:
        query = sa.select(sa.func.max(points.c.matrix_id))
        return query.where(points.c.series_id == series_id, points.c.matrix_id < below).scalar_subquery()

    walk = sa.select(
        start.c.number,
        start.c.series_id,
        start.c.other_series_id,
        start.c.most,
        newest(start.c.series_id, start.c.below).label("its"),
        newest(start.c.other_series_id, start.c.below).label("others"),
        sa.literal_column("0").label("steps"),
    ).cte("walk", recursive=True)
    has_both = walk.c.its == walk.c.others
    below = sa.case(
        (has_both, walk.c.its), (walk.c.its < walk.c.others, walk.c.its + 1), else_=walk.c.others + 1
    )
    walk = walk.union_all(
        sa.select(
            walk.c.number,
            walk.c.series_id,
            walk.c.other_series_id,
            walk.c.most - sa.case((has_both, 1), else_=0),
            newest(walk.c.series_id, below),
            newest(walk.c.other_series_id, below),
            walk.c.steps + 1,
        ).where(
            walk.c.its.is_not(None),
            walk.c.others.is_not(None),
            walk.c.most > sa.case((has_both, 1), else_=0),
            walk.c.steps < MAX_STEPS,
        )
    )
    return (
        sa.select(walk.c.number, points.c.matrix_id, points.c.cell_id)
        .join_from(
            walk,
            points,
            sa.and_(
                points.c.matrix_id == walk.c.its,
                points.c.series_id.in_([walk.c.series_id, walk.c.other_series_id]),
            ),
        )
        .where(walk.c.its == walk.c.others)
    )


def _measured(
    connection: Connection, cell_ids: Collection[CellId]
) -> Mapping[tuple[MatrixId, SeriesId], Sequence[PastMeasurement]]:
    """Return the accepted measurements of cells by matrix and series, of each oldest first."""
    query = (
        sa.select(*_COLUMNS)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(is_among(connection, measurements.c.cell_id, cell_ids), is_accepted(connection))
        .order_by(measurements.c.measurement_id)
    )
    found: defaultdict[tuple[MatrixId, SeriesId], list[PastMeasurement]] = defaultdict(list)
    for row in connection.execute(query).all():
        measured = PastMeasurement._make(with_enums(row))
        found[measured.matrix_id, measured.series_id].append(measured)
    return found


_DEVICE: list[sa.ColumnClause[Any]] = [sa.column("device_id", sa.Text)]


def aa_pairs(
    connection: Connection, device_ids: Collection[DeviceId], *, matrices: int
) -> dict[DeviceId, list[tuple[CellId, CellId]]]:
    """Return the A/A pairs (baseline, duplicate) of devices, in the newest matrices of each that have one."""
    rows = rows_text([(device_id,) for device_id in device_ids])
    asked = rows_query(connection.dialect.name, _DEVICE, rows).subquery("asked")
    own = cells.alias("own")
    newest = (
        sa.select(own.c.matrix_id)
        .distinct()
        .where(own.c.device_id == asked.c.device_id, own.c.replica > 1)
        .order_by(own.c.matrix_id.desc())
        .limit(matrices)
    )
    duplicates = sa.and_(cells.c.device_id == asked.c.device_id, cells.c.replica > 1)
    of_newest = join_limited(connection, asked, newest, cells.c.matrix_id, duplicates)
    baseline = cells.alias("baseline")
    is_baseline = sa.and_(
        baseline.c.matrix_id == cells.c.matrix_id, baseline.c.cell_index == cells.c.baseline_index
    )
    query = sa.select(cells.c.device_id, baseline.c.cell_id, cells.c.cell_id).select_from(
        of_newest.join(baseline, is_baseline)
    )
    pairs: dict[DeviceId, list[tuple[CellId, CellId]]] = {}
    for device_id, baseline_id, duplicate_id in connection.execute(query).all():
        pairs.setdefault(device_id, []).append((baseline_id, duplicate_id))
    return pairs


def duplicates_of(
    connection: Connection, baselines: Collection[tuple[MatrixId, int]]
) -> dict[tuple[MatrixId, int], list[CellId]]:
    """Return the duplicates (A/A) of baselines, which are given by matrix and index."""
    found: dict[tuple[MatrixId, int], list[CellId]] = {}
    if not baselines:
        return found
    query = sa.select(cells.c.matrix_id, cells.c.baseline_index, cells.c.cell_id).where(
        is_among(connection, cells.c.matrix_id, {matrix_id for matrix_id, _ in baselines}),
        cells.c.replica > 1,
        is_among(connection, cells.c.baseline_index, {index for _, index in baselines}),
    )
    for row in connection.execute(query):
        if (place := (row.matrix_id, row.baseline_index)) in baselines:
            found.setdefault(place, []).append(CellId(row.cell_id))
    return found
