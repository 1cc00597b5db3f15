"""Points as of a moment: of the sessions that had ended by then, and the sessions that changed since."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.database.tables import cells, is_set, matrices, measurements, points
from farm.store.results.history.newest_points import DevicePoint, SlotPair, device_point_columns
from farm.store.results.history.stale_points import HAS_POINTS, MeasuredSession


def sessions_superseded_since(connection: Connection, at: datetime, *, limit: int) -> list[MeasuredSession]:
    """Return the sessions with points whose measurements were retracted or parsed again since a time.

    Up to `limit` of them.
    """
    query = (
        sa.select(cells.c.matrix_id, cells.c.device_id)
        .distinct()
        .join(measurements, measurements.c.cell_id == cells.c.cell_id)
        .join(matrices, matrices.c.matrix_id == cells.c.matrix_id)
        .where(
            HAS_POINTS,
            measurements.c.superseded_at.is_not(None),
            measurements.c.superseded_at > at,
            measurements.c.measured_at <= at,
        )
        .limit(limit)
    )
    return [MeasuredSession(row.matrix_id, row.device_id) for row in connection.execute(query)]


def points_ended_by(
    connection: Connection,
    at: datetime | None,
    *,
    without: Collection[MeasuredSession],
    device_ids: Collection[DeviceId] | None = None,
) -> dict[SlotPair, list[DevicePoint]]:
    """Return the last point of each comparison on each device, of those that had ended by a time, by slots.

    A step into the index of a series for each of them, however many matrices there are.

    Args:
        connection: the database.
        at: the time; None: now.
        without: sessions whose points do not count.
        device_ids: only on these devices.
    """
    own = points.alias("own")
    last = (
        sa.select(own.c.cell_id)
        .where(
            own.c.series_id == points.c.series_id,
            own.c.baseline_series_id == points.c.baseline_series_id,
            own.c.replica == 1,
            own.c.rounds > 0,
            sa.true() if at is None else own.c.ended_at <= at,
        )
        .order_by(own.c.matrix_id.desc(), own.c.cell_id.desc())
        .limit(1)
        .correlate(points)
    )
    if without:
        session = sa.tuple_(own.c.matrix_id, own.c.device_id)
        last = last.where(session.not_in([tuple(each) for each in without]))
    found = points.alias("found")
    query = (
        sa.select(found.c.slot, found.c.baseline_slot, *device_point_columns(found))
        .select_from(points.join(found, found.c.cell_id == last.scalar_subquery()))
        .where(is_set(points.c.newest), points.c.replica == 1, points.c.baseline_slot.is_not(None))
    )
    if device_ids is not None:
        query = query.where(points.c.device_id.in_(list(device_ids)))
    by_slots: defaultdict[SlotPair, list[DevicePoint]] = defaultdict(list)
    for slot, baseline_slot, *values in connection.execute(query).all():
        by_slots[SlotPair(slot, baseline_slot)].append(DevicePoint._make(values))
    return by_slots
