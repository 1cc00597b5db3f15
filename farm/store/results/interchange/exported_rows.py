"""Measurements that count, page by page in the order of their numbers, and what changed in earlier ones."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.operations.event import FarmEvent
from farm.database.rows import is_among
from farm.database.tables import (
    cells,
    device_facts,
    devices,
    events,
    measurements,
    points,
    series,
    variants,
)
from farm.store.results.history.stale_points import pending_sessions
from farm.wire.documents.results.export import MeasurementRow

_WITH_CELLS = measurements.join(cells, cells.c.cell_id == measurements.c.cell_id)
_WITH_NAMES = (
    _WITH_CELLS.join(series, series.c.series_id == measurements.c.series_id)
    .join(devices, devices.c.device_id == cells.c.device_id)
    .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
)
ExportedColumns = sa.Select[Any]
#: All columns of an exported measurement but those of the device's facts.
ROWS = sa.select(
    *(measurements.c[name] for name in MeasurementRow.model_fields if name in measurements.c),
    *cells.c["matrix_id", "cell_index", "baseline_index", "replica", "label", "device_id"],
    *series.c["model", "recipe", "backend", "harness", "settings"],
    variants.c.name.label("variant"),
    devices.c.label.label("device_label"),
).select_from(_WITH_NAMES)
#: The packed samples of measurements.
SAMPLES = sa.select(
    *measurements.c["measurement_id", "cell_id", "samples", "measured_at"], cells.c.device_id
).select_from(_WITH_CELLS)
#: The attempts of measurements.
ATTEMPTS = sa.select(
    *measurements.c["measurement_id", "attempt_id", "measured_at"], cells.c.device_id
).select_from(_WITH_CELLS)


def last_of_page(connection: Connection, *, after: int, until: int, limit: int) -> int | None:
    """Return the number of the last measurement of a page, whether it counts or not; None for no page.

    Pages are ranges of the primary key, so that one costs the same at every place of a long history.
    """
    numbers = (
        sa.select(measurements.c.measurement_id)
        .where(measurements.c.measurement_id > after, measurements.c.measurement_id < until)
        .order_by(measurements.c.measurement_id)
        .limit(limit)
        .subquery()
    )
    last: int | None = connection.execute(sa.select(sa.func.max(numbers.c.measurement_id))).scalar_one()
    return last


def counted_rows(
    connection: Connection,
    columns: ExportedColumns,
    *,
    first: int,
    last: int,
    since: datetime | None,
    until: datetime | None,
) -> list[dict[str, Any]]:
    """Return columns of the measurements that count, by a range of numbers and a span of time."""
    query = columns.where(
        measurements.c.measurement_id.between(first, last), measurements.c.accepted
    ).order_by(measurements.c.measurement_id)
    if since is not None:
        query = query.where(measurements.c.measured_at >= since)
    if until is not None:
        query = query.where(measurements.c.measured_at < until)
    return [dict(row) for row in connection.execute(query).mappings()]


def facts_of(connection: Connection, facts_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return facts of devices as they are stored, by number."""
    query = sa.select(device_facts.c.facts_id, device_facts.c.facts).where(
        is_among(connection, device_facts.c.facts_id, facts_ids)
    )
    return {row.facts_id: row.facts for row in connection.execute(query)}


def last_measurement(connection: Connection) -> int:
    """Return the highest number of a measurement; 0 without any.

    Numbers become visible in their order: writers have one lock.
    """
    return connection.execute(sa.select(sa.func.max(measurements.c.measurement_id))).scalar() or 0


def changed_blocks(connection: Connection, *, since: datetime, size: int) -> list[int]:
    """Return the blocks of measurements, by `size`, of which some were superseded or given energy since."""
    superseded = sa.select(measurements.c.measurement_id).where(measurements.c.superseded_at >= since)
    given = sa.select(sa.cast(events.c.subject_id, measurements.c.attempt_id.type)).where(
        events.c.kind == FarmEvent.ENERGY_IMPORTED.value, events.c.at >= since
    )
    measured = sa.select(measurements.c.measurement_id).where(measurements.c.attempt_id.in_(given))
    numbers = sa.union(superseded, measured).subquery()
    blocks = sa.select(numbers.c.measurement_id.op("/")(size)).distinct()
    return sorted(connection.execute(blocks).scalars())


def changed_matrices(connection: Connection, *, after: int, since: datetime) -> list[MatrixId]:
    """Return the matrices whose speedups may differ since.

    Those with measurements above a number or superseded since; later ones with a series of these, whose
    variance moderates them; and those whose points are still to be computed, by which later ones are found.
    """
    is_changed = sa.or_(measurements.c.measurement_id > after, measurements.c.superseded_at >= since)
    changed = (
        sa.select(measurements.c.series_id, sa.func.min(cells.c.matrix_id).label("matrix_id"))
        .select_from(_WITH_CELLS)
        .where(is_changed)
        .group_by(measurements.c.series_id)
        .subquery()
    )
    own = sa.select(cells.c.matrix_id).select_from(_WITH_CELLS).where(is_changed)
    later = sa.select(points.c.matrix_id).join(
        changed,
        sa.and_(points.c.series_id == changed.c.series_id, points.c.matrix_id > changed.c.matrix_id),
    )
    found = {MatrixId(matrix_id) for matrix_id in connection.execute(sa.union(own, later)).scalars()}
    return sorted(found | {session.matrix_id for session in pending_sessions(connection)})
