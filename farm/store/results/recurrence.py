"""Recurrence of series over matrices, and queues without progress."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, JobId
from farm.core.jobs.job import JobKind
from farm.database.rows import to_record
from farm.database.tables import attempts, cells, devices, jobs, matrices, measurements, series
from farm.store.jobs.queues import head_of_queue

#: Of one series: more than a habit takes, however many rounds a matrix has.
_MEASUREMENTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesResults:
    """The times of a series' recent results, one per matrix."""

    series_id: int
    device_id: DeviceId
    label: str
    matrix_name: str
    results_at: tuple[datetime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StarvedDevice:
    """A device whose next job has waited long, while no job ended there."""

    device_id: DeviceId
    cell_id: CellId
    job_id: JobId
    label: str
    queued_at: datetime


def series_after(connection: Connection, series_id: int, *, limit: int) -> list[int]:
    """Return the next series ids."""
    query = sa.select(series.c.series_id).where(series.c.series_id > series_id)
    return list(connection.execute(query.order_by(series.c.series_id).limit(limit)).scalars())


def result_times(
    connection: Connection, series_ids: Sequence[int], *, since: datetime
) -> list[SeriesResults]:
    """Return the times of results of series since a time; series without results are missing."""
    return [
        results
        for series_id in series_ids
        if (results := _result_times_query(connection, series_id, since)) is not None
    ]


def _result_times_query(connection: Connection, series_id: int, since: datetime) -> SeriesResults | None:
    last = (
        sa.select(measurements.c.cell_id, measurements.c.measured_at)
        .where(
            measurements.c.series_id == series_id,
            measurements.c.measured_at >= since,
            measurements.c.accepted,
        )
        .order_by(measurements.c.measured_at.desc())
        .limit(_MEASUREMENTS)
        .subquery()
    )
    query = (
        sa.select(
            sa.func.max(last.c.measured_at).label("at"),
            sa.func.max(cells.c.label).label("label"),
            sa.func.max(cells.c.device_id).label("device_id"),
            matrices.c.name,
        )
        .join(cells, cells.c.cell_id == last.c.cell_id)
        .join(matrices, matrices.c.matrix_id == cells.c.matrix_id)
        .group_by(matrices.c.matrix_id, matrices.c.name)
        .order_by(sa.text("1 DESC"))
    )
    rows = connection.execute(query).all()
    if not rows:
        return None
    return SeriesResults(
        series_id=series_id,
        device_id=rows[0].device_id,
        label=rows[0].label,
        matrix_name=rows[0].name,
        results_at=tuple(row.at for row in rows),
    )


def starved_devices(connection: Connection, *, queued_before: datetime) -> list[StarvedDevice]:
    """Return devices whose next job was queued before a time, and on which no job ended since then."""
    ended = (
        sa.select(attempts.c.finished_at)
        .where(attempts.c.device_id == devices.c.device_id, attempts.c.outcome.is_not(None))
        .order_by(attempts.c.fence.desc())
        .limit(1)
        .correlate(devices)
        .scalar_subquery()
    )
    query = (
        sa.select(
            jobs.c.job_id,
            jobs.c.device_id,
            jobs.c.cell_id,
            jobs.c.created_at.label("queued_at"),
            cells.c.label,
        )
        .select_from(devices)
        .join(jobs, jobs.c.job_id == head_of_queue())
        .join(cells, cells.c.cell_id == jobs.c.cell_id)
        .where(
            jobs.c.kind == JobKind.BENCHMARK,
            jobs.c.created_at <= queued_before,
            sa.func.coalesce(ended, jobs.c.created_at) <= queued_before,
        )
        .order_by(devices.c.device_id)
    )
    return [to_record(StarvedDevice, row) for row in connection.execute(query)]
