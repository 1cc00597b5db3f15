"""What a device did last, and what waits for it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.attempt import AttemptState
from farm.core.device import Admin
from farm.core.ids import AttemptId, DeviceId, JobId, MatrixId
from farm.core.job import JobKind, JobState
from farm.core.measurement import Outcome
from farm.store.tables import attempts, devices, jobs, word


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAttempt:
    """One of the last attempts on a device."""

    attempt_id: AttemptId
    job_id: JobId
    kind: JobKind
    state: AttemptState
    outcome: Outcome | None
    code: str | None
    claimed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """A job that waits for a device."""

    job_id: JobId
    #: None for a check.
    matrix_id: MatrixId | None


def last_attempts(connection: Connection, device_id: DeviceId, *, limit: int) -> list[PastAttempt]:
    """The newest attempts on a device, newest first."""
    query = (
        sa.select(attempts, jobs.c.kind)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(attempts.c.device_id == device_id)
        .order_by(attempts.c.fence.desc())
        .limit(limit)
    )
    return [
        PastAttempt(
            attempt_id=row.attempt_id,
            job_id=row.job_id,
            kind=JobKind(row.kind),
            state=AttemptState(row.state),
            outcome=None if row.outcome is None else Outcome(row.outcome),
            code=row.code,
            claimed_at=row.claimed_at,
        )
        for row in connection.execute(query)
    ]


def queued_jobs(connection: Connection, device_id: DeviceId) -> list[QueuedJob]:
    """What waits for a device, in no particular order."""
    query = sa.select(jobs.c.job_id, jobs.c.matrix_id).where(
        jobs.c.device_id == device_id, jobs.c.state == word(JobState.QUEUED)
    )
    return [QueuedJob(job_id=row.job_id, matrix_id=row.matrix_id) for row in connection.execute(query)]


def without_queue(connection: Connection, device_ids: Collection[DeviceId]) -> list[DeviceId]:
    """Those of some devices for which nothing waits."""
    waits = sa.exists().where(jobs.c.device_id == devices.c.device_id, jobs.c.state == word(JobState.QUEUED))
    query = sa.select(devices.c.device_id).where(devices.c.device_id.in_(device_ids), ~waits)
    return list(connection.execute(query).scalars())


def retired_with_jobs(connection: Connection) -> list[DeviceId]:
    """Retired devices that something waits for all the same: it was queued again after an attempt, say."""
    waits = sa.exists().where(jobs.c.device_id == devices.c.device_id, jobs.c.state == word(JobState.QUEUED))
    query = sa.select(devices.c.device_id).where(devices.c.admin == Admin.RETIRED, waits)
    return list(connection.execute(query).scalars())
