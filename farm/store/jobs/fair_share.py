"""Virtual times by which users share a device's queue."""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.jobs.fair_share import first_virtual_time
from farm.core.jobs.job import JobState
from farm.database.tables import devices, jobs, literal, matrices
from farm.store.matrices import lazy_expansion


def first_virtual_times(
    connection: Connection, device_ids: Collection[DeviceId], *, priority: int, submitted_by: str | None
) -> dict[DeviceId, int]:
    """Return by device the virtual time at which a submitter's next jobs of a priority join its queue."""
    heads = _heads(connection, device_ids, priority)
    tails: dict[DeviceId, int] = {}
    if submitted_by is not None:
        tails = _own_tails(connection, device_ids, priority, submitted_by)
        # What is not queued yet has its virtual times already.
        later = lazy_expansion.last_virtual_times(
            connection, device_ids, priority=priority, submitted_by=submitted_by
        )
        tails |= {device_id: max(time, tails.get(device_id, 0)) for device_id, time in later.items()}
    return {
        device_id: first_virtual_time(heads.get(device_id), tails.get(device_id)) for device_id in device_ids
    }


def _heads(connection: Connection, device_ids: Collection[DeviceId], priority: int) -> dict[DeviceId, int]:
    """Return the virtual time at the head of each device's queue, by one index lookup per device."""
    head = (
        sa.select(jobs.c.virtual_time)
        .where(
            jobs.c.device_id == devices.c.device_id,
            jobs.c.state == literal(JobState.QUEUED),
            jobs.c.priority == priority,
        )
        .order_by(jobs.c.virtual_time)
        .limit(1)
        .correlate(devices)
        .scalar_subquery()
    )
    query = sa.select(devices.c.device_id, head.label("virtual_time")).where(
        devices.c.device_id.in_(list(device_ids))
    )
    return {
        DeviceId(row.device_id): row.virtual_time
        for row in connection.execute(query)
        if row.virtual_time is not None
    }


def _own_tails(
    connection: Connection, device_ids: Collection[DeviceId], priority: int, submitted_by: str
) -> dict[DeviceId, int]:
    """Return the last virtual time of a submitter's waiting jobs; the cost grows with these alone."""
    own = sa.select(matrices.c.matrix_id).where(matrices.c.submitted_by == submitted_by)
    query = (
        sa.select(jobs.c.device_id, sa.func.max(jobs.c.virtual_time).label("virtual_time"))
        .where(
            jobs.c.matrix_id.in_(own),
            jobs.c.state == JobState.QUEUED,
            jobs.c.device_id.in_(list(device_ids)),
            jobs.c.priority == priority,
        )
        .group_by(jobs.c.device_id)
    )
    return {DeviceId(row.device_id): row.virtual_time for row in connection.execute(query)}
