"""What was measured of pairs in earlier matrices: their variance, and the alarms of A/A pairs."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, Digest, FactsId, MatrixId, SeriesId
from farm.core.devices.controls import ControlLevel
from farm.core.runs.measurement import Quality, SampleKind
from farm.database.rows import is_among, to_record
from farm.database.tables import cells, measurements, points, series
from farm.store.results.history.session_starts import cells_of_sessions
from farm.store.results.history.stale_points import MeasuredSession, pending_sessions
from farm.store.results.measurements import is_accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMeasurement:
    """An accepted measurement of an earlier matrix."""

    matrix_id: MatrixId
    cell_id: CellId
    series_id: SeriesId
    round: int
    block: int
    repeat: int
    quality: Quality
    kind: SampleKind
    value_ns: float
    clock_step_ns: int
    facts_id: FactsId | None
    start_skin_c: float | None
    start_battery_c: float | None
    boot_id: str | None
    start_uptime_s: float | None
    control_level: ControlLevel
    variant_digest: Digest | None
    program_digest: Digest


_COLUMNS = [
    (cells if name == "matrix_id" else measurements).c[name] for name in PastMeasurement.__dataclass_fields__
]


#: The newest matrix before one in which one of some series has a point: a step into an index for each series.
_LAST_OF_SERIES = (
    sa.select(sa.func.max(points.c.matrix_id))
    .where(points.c.series_id == series.c.series_id, points.c.matrix_id < sa.bindparam("before"))
    .scalar_subquery()
)


def past_measurements(
    connection: Connection, series_ids: Collection[SeriesId], *, before: MatrixId, matrices: int
) -> list[PastMeasurement]:
    """Return the accepted measurements of series in the newest matrices before one, of each oldest first.

    Matrices are found by points, or are not computed yet, so older ones cost nothing.

    Args:
        connection: the database.
        series_ids: the series.
        before: only matrices of lower numbers.
        matrices: so many of them at most.
    """
    of_series = is_among(connection, series.c.series_id, series_ids)
    devices = connection.execute(sa.select(series.c.device_id).where(of_series).distinct()).scalars().all()
    pending = pending_sessions(connection, devices)
    found: dict[MatrixId, list[PastMeasurement]] = {}
    while some := _matrices_before(connection, of_series, pending, before=before, most=matrices - len(found)):
        sessions = [session for session in pending if session.matrix_id in some]
        stored = sa.select(points.c.cell_id).where(
            is_among(connection, points.c.series_id, series_ids), points.c.matrix_id.in_(some)
        )
        own = {*connection.execute(stored).scalars()}
        own |= {cell.cell_id for cell in cells_of_sessions(connection, sessions)}
        for row in connection.execute(_measured_in(connection, own, series_ids)):
            found.setdefault(row.matrix_id, []).append(to_record(PastMeasurement, row))
        before = some[-1]
    return [measurement for matrix_id in sorted(found) for measurement in found[matrix_id]]


def _matrices_before(
    connection: Connection,
    of_series: sa.ColumnElement[bool],
    pending: Collection[MeasuredSession],
    *,
    before: MatrixId,
    most: int,
) -> list[MatrixId]:
    """Return the next matrices that may have measured some series, the newest first."""
    query = sa.select(sa.func.max(_LAST_OF_SERIES)).where(of_series)
    found: list[MatrixId] = []
    while len(found) < most:
        stored = connection.execute(query, {"before": before}).scalar()
        others = (session.matrix_id for session in pending if session.matrix_id < before)
        last = max([*others, *([] if stored is None else [MatrixId(stored)])], default=None)
        if last is None:
            break
        found.append(last)
        before = last
    return found


def _measured_in(
    connection: Connection, cell_ids: Collection[CellId], series_ids: Collection[SeriesId]
) -> sa.Select[Any]:
    return (
        sa.select(*_COLUMNS)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(
            is_among(connection, measurements.c.cell_id, cell_ids),
            measurements.c.series_id.in_(series_ids),
            is_accepted(connection),
        )
        .order_by(measurements.c.measurement_id)
    )


def aa_pairs(connection: Connection, device_id: DeviceId, *, matrices: int) -> list[tuple[CellId, CellId]]:
    """Return the A/A pairs of a device in its newest matrices with such pairs: baseline and duplicate."""
    duplicates = sa.and_(cells.c.device_id == device_id, cells.c.replica > 1)
    newest = (
        sa.select(cells.c.matrix_id)
        .distinct()
        .where(duplicates)
        .order_by(cells.c.matrix_id.desc())
        .limit(matrices)
    )
    baseline = cells.alias("baseline")
    is_baseline = sa.and_(
        baseline.c.matrix_id == cells.c.matrix_id, baseline.c.cell_index == cells.c.baseline_index
    )
    query = (
        sa.select(baseline.c.cell_id, cells.c.cell_id)
        .select_from(cells.join(baseline, is_baseline))
        .where(duplicates, cells.c.matrix_id.in_(newest))
    )
    return [(CellId(row[0]), CellId(row[1])) for row in connection.execute(query)]


def duplicates_of(
    connection: Connection, matrix_id: MatrixId, baseline_indexes: Collection[int]
) -> dict[int, list[CellId]]:
    """Return by index the duplicates (A/A) of baselines of a matrix."""
    query = sa.select(cells.c.baseline_index, cells.c.cell_id).where(
        cells.c.matrix_id == matrix_id,
        cells.c.replica > 1,
        is_among(connection, cells.c.baseline_index, baseline_indexes),
    )
    found: dict[int, list[CellId]] = {}
    for row in connection.execute(query):
        found.setdefault(row.baseline_index, []).append(CellId(row.cell_id))
    return found
