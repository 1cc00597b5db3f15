"""Placements of measurements and series."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, FactsId, MatrixId
from farm.core.results.settle.report_context import LastPlacement
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Quality
from farm.core.runs.placement import Placement, placement_text
from farm.core.runs.plan import EarlierPlacement
from farm.database.rows import to_record
from farm.database.tables import cells, devices, measurements, series
from farm.wire.documents.results.results import PlacedSeries

_PLACEMENT = TypeAdapter(Placement)


def stored_placement(placement: Placement | None) -> dict[str, Any] | None:
    """Return a placement as stored in its column."""
    if placement is None:
        return None
    stored = {**asdict(placement), "warnings": list(placement.warnings)}
    offered = stored.pop("offered")
    # Most runs have no such list, nor have those stored before there was one.
    return {**stored, "offered": list(offered)} if offered else stored


def placed_series(
    connection: Connection, *, matrix_id: MatrixId | None = None, device_id: DeviceId | None = None
) -> list[PlacedSeries]:
    """Return each series with its latest measurement: all, or those of one matrix or device."""
    newest = (
        sa.func.row_number()
        .over(
            partition_by=measurements.c.series_id,
            order_by=(measurements.c.measured_at.desc(), measurements.c.measurement_id.desc()),
        )
        .label("newest")
    )
    own = measurements.c.series_id
    is_capped = sa.case((measurements.c.quality == Quality.CAPPED, 1), else_=0)
    query = sa.select(
        measurements,
        newest,
        sa.func.count().over(partition_by=own).label("runs"),
        sa.func.sum(is_capped).over(partition_by=own).label("capped"),
    ).where(measurements.c.accepted)
    if matrix_id is not None:
        query = query.join(cells, cells.c.cell_id == measurements.c.cell_id)
        query = query.where(cells.c.matrix_id == matrix_id)
    ranked = query.subquery()
    latest_placements = (
        sa.select(
            ranked, *(series.c[name] for name in _SERIES_COLUMNS), devices.c.label.label("device_label")
        )
        .join(series, series.c.series_id == ranked.c.series_id)
        .join(devices, devices.c.device_id == series.c.device_id)
        .where(ranked.c.newest == 1)
        .order_by(series.c.series_id)
    )
    if device_id is not None:
        latest_placements = latest_placements.where(series.c.device_id == device_id)
    return [_series_of_row(row) for row in connection.execute(latest_placements)]


_SERIES_COLUMNS = ("device_id", "model", "recipe", "backend", "harness", "settings")


def last_placements(connection: Connection, digests: Sequence[Digest]) -> dict[Digest, LastPlacement]:
    """Return the last known placements of series by digest; others are missing."""
    newer = measurements.alias()
    last = (
        sa.select(newer.c.measurement_id)
        .where(
            newer.c.series_id == series.c.series_id,
            newer.c.accepted,
            newer.c.accelerator != UNKNOWN_ACCELERATOR,
        )
        .order_by(newer.c.measured_at.desc(), newer.c.measurement_id.desc())
        .limit(1)
        .correlate(series)
        .scalar_subquery()
    )
    query = (
        sa.select(
            series.c.series_digest, series.c.series_id, *(measurements.c[name] for name in _PLACEMENT_COLUMNS)
        )
        .select_from(series)
        .join(measurements, measurements.c.measurement_id == last)
        .where(series.c.series_digest.in_(digests))
    )
    return {row.series_digest: to_record(LastPlacement, row) for row in connection.execute(query)}


_PLACEMENT_COLUMNS = ("actual_backend", "accelerator", "placement")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRuns:
    """Earlier measurements of a cell with one program on one system build of its device."""

    #: Accepted measurements.
    runs: int
    #: The first placement of one of them that shows the hardware.
    shown: EarlierPlacement | None


def earlier_runs(
    connection: Connection, cell_id: CellId, facts_id: FactsId | None, program_digest: Digest
) -> EarlierRuns:
    """Return earlier measurements of the same cell; none for a device without facts."""
    query = (
        sa.select(measurements.c.attempt_id, measurements.c.accelerator, measurements.c.placement)
        .where(
            measurements.c.cell_id == cell_id,
            measurements.c.facts_id == facts_id,
            measurements.c.program_digest == program_digest,
            measurements.c.accepted,
        )
        .order_by(measurements.c.measurement_id)
    )
    rows = [] if facts_id is None else list(connection.execute(query))
    placed_rows = (row for row in rows if row.accelerator != UNKNOWN_ACCELERATOR)
    placed = ((AttemptId(row.attempt_id), _parse(row.placement)) for row in placed_rows)
    shown = (
        EarlierPlacement(attempt_id=attempt_id, placement=placement)
        for attempt_id, placement in placed
        if placement is not None and placement.shares
    )
    return EarlierRuns(runs=len(rows), shown=next(shown, None))


def current_placements(
    connection: Connection, attempt_ids: Collection[AttemptId]
) -> dict[AttemptId, Placement | None]:
    """Return the placements in the accepted readings of attempts; None if unknown, others are missing."""
    query = sa.select(
        measurements.c.attempt_id,
        measurements.c.accelerator,
        measurements.c.quality,
        measurements.c.placement,
    ).where(measurements.c.attempt_id.in_(attempt_ids), measurements.c.accepted)
    return {
        AttemptId(row.attempt_id): None
        if row.accelerator == UNKNOWN_ACCELERATOR or row.quality == Quality.WITHDRAWN
        else _parse(row.placement)
        for row in (connection.execute(query) if attempt_ids else ())
    }


def _series_of_row(row: sa.Row[Any]) -> PlacedSeries:
    placement = _parse(row.placement)
    words = row.accelerator if placement is None else placement_text(placement)
    return to_record(PlacedSeries, row, words=words)


def _parse(stored: Any) -> Placement | None:
    return None if stored is None else _PLACEMENT.validate_python(stored)
