"""Placements of measurements and series."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, FactsId, MatrixId, SeriesId
from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Recipe
from farm.core.results.settle.placement_change import LastPlacement
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Quality
from farm.core.runs.placement import Placement
from farm.core.runs.plan import EarlierPlacement
from farm.database.tables import cells, measurements, series

_PLACEMENT = TypeAdapter(Placement)
_RECIPE = TypeAdapter(Recipe)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSeries:
    """A series with the placement of its latest accepted measurement."""

    series_id: SeriesId
    device_id: DeviceId
    model: str | None
    recipe: Recipe | None
    backend: str
    harness: str
    #: Only settings that are not the harness's defaults.
    settings: dict[str, SettingValue]
    attempt_id: AttemptId
    quality: Quality
    actual_backend: str
    accelerator: str
    proof: str
    placement: Placement | None
    measured_at: datetime


def stored_placement(placement: Placement | None) -> dict[str, Any] | None:
    """Return a placement as stored in its column."""
    if placement is None:
        return None
    stored = {**asdict(placement), "warnings": list(placement.warnings)}
    offered = stored.pop("offered")
    # Most runs have no such list, and those that were kept before there was one are no other.
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
    query = sa.select(measurements, newest).where(measurements.c.accepted)
    if matrix_id is not None:
        query = query.join(cells, cells.c.cell_id == measurements.c.cell_id)
        query = query.where(cells.c.matrix_id == matrix_id)
    ranked = query.subquery()
    found = (
        sa.select(ranked, *(series.c[name] for name in _SERIES_COLUMNS))
        .join(series, series.c.series_id == ranked.c.series_id)
        .where(ranked.c.newest == 1)
        .order_by(series.c.series_id)
    )
    if device_id is not None:
        found = found.where(series.c.device_id == device_id)
    return [_placed(row) for row in connection.execute(found)]


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
    return {
        row.series_digest: LastPlacement(
            series_id=row.series_id,
            actual_backend=row.actual_backend,
            accelerator=row.accelerator,
            placement=_parse(row.placement),
        )
        for row in connection.execute(query)
    }


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
    known = (row for row in rows if row.accelerator != UNKNOWN_ACCELERATOR)
    placed = ((AttemptId(row.attempt_id), _parse(row.placement)) for row in known)
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


def _placed(row: sa.Row[Any]) -> PlacedSeries:
    return PlacedSeries(
        series_id=row.series_id,
        device_id=row.device_id,
        model=row.model,
        recipe=None if row.recipe is None else _RECIPE.validate_python(row.recipe),
        backend=row.backend,
        harness=row.harness,
        settings=dict(row.settings),
        attempt_id=row.attempt_id,
        quality=Quality(row.quality),
        actual_backend=row.actual_backend,
        accelerator=row.accelerator,
        proof=row.proof,
        placement=_parse(row.placement),
        measured_at=row.measured_at,
    )


def _parse(stored: Any) -> Placement | None:
    return None if stored is None else _PLACEMENT.validate_python(stored)
