"""What was measured of pairs in earlier matrices: their variance, and the alarms of A/A pairs."""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, Digest, FactsId, MatrixId, SeriesId
from farm.core.devices.controls import ControlLevel
from farm.core.runs.measurement import Quality, SampleKind
from farm.database.rows import is_among, to_record
from farm.database.tables import cells, measurements
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


def past_measurements(
    connection: Connection, series_ids: Collection[SeriesId], *, before: MatrixId, matrices: int
) -> list[PastMeasurement]:
    """Return the accepted measurements of series in the newest matrices before one, oldest first.

    Args:
        connection: the database.
        series_ids: the series.
        before: only matrices of lower numbers.
        matrices: so many of them at most.
    """
    of_series = is_among(connection, measurements.c.series_id, series_ids)
    joined = measurements.join(cells, cells.c.cell_id == measurements.c.cell_id)
    newest = (
        sa.select(cells.c.matrix_id)
        .distinct()
        .select_from(joined)
        .where(of_series, is_accepted(connection), cells.c.matrix_id < before)
        .order_by(cells.c.matrix_id.desc())
        .limit(matrices)
    )
    among = connection.execute(newest).scalars().all()
    query = (
        sa.select(*_COLUMNS)
        .select_from(joined)
        .where(of_series, is_accepted(connection), cells.c.matrix_id.in_(among))
        .order_by(measurements.c.measurement_id)
    )
    return [to_record(PastMeasurement, row) for row in connection.execute(query)]


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
