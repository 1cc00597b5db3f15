"""Attempts whose reports are missing and would still count."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, HostId
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.job import JobState
from farm.database.tables import attempts, devices, jobs

#: Of each device so many attempts are looked at, the latest: older ones were followed by others.
_LATEST = 20


def missing_reports(connection: Connection, host_id: HostId) -> list[AttemptId]:
    """Return the lost attempts on a host's devices that are still the current ones of their jobs."""
    query = sa.select(devices.c.device_id).where(devices.c.host_id == host_id).order_by(devices.c.device_id)
    found: list[AttemptId] = []
    for device_id in connection.execute(query).scalars().all():
        found += [
            AttemptId(row.attempt_id) for row in connection.execute(_missing_on_device(device_id, host_id))
        ]
    return found


def _missing_on_device(device_id: str, host_id: HostId) -> sa.Select[Any]:
    latest = (
        sa.select(attempts)
        .where(attempts.c.device_id == device_id)
        .order_by(attempts.c.fence.desc())
        .limit(_LATEST)
        .subquery()
    )
    return (
        sa.select(latest.c.attempt_id)
        .join(jobs, jobs.c.job_id == latest.c.job_id)
        .where(
            latest.c.host_id == host_id,
            latest.c.state == AttemptState.LOST,
            jobs.c.attempt_id == latest.c.attempt_id,
            jobs.c.state == JobState.QUEUED,
        )
        .order_by(latest.c.attempt_id)
    )
