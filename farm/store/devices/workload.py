"""The last attempts on devices, and the jobs that wait for them."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, JobId, MatrixId
from farm.core.devices.device import Admin
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.job import JobKind, JobState
from farm.core.runs.measurement import Outcome
from farm.database.tables import attempts, devices, jobs, lazy_expansions, literal


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


def last_attempts(connection: Connection, device_id: DeviceId, *, limit: int) -> list[PastAttempt]:
    """Return the last attempts on a device, newest first."""
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


def count_waiting(connection: Connection, device_ids: Collection[DeviceId]) -> Mapping[MatrixId | None, int]:
    """Return by matrix (None for checks) how many jobs wait for these devices, also those without a row."""
    of_jobs, of_cursors = jobs.c.device_id.in_(device_ids), lazy_expansions.c.device_id.in_(device_ids)
    remaining = sa.func.sum(lazy_expansions.c.jobs - lazy_expansions.c.expanded_jobs).label("jobs")
    queued = (
        sa.select(jobs.c.matrix_id, sa.func.count().label("jobs"))
        .where(of_jobs, jobs.c.state == literal(JobState.QUEUED))
        .group_by(jobs.c.matrix_id)
    )
    unqueued = (
        sa.select(lazy_expansions.c.matrix_id, remaining)
        .where(of_cursors, lazy_expansions.c.cancelled_at.is_(None))
        .group_by(lazy_expansions.c.matrix_id)
    )
    counts: Counter[MatrixId | None] = Counter()
    for query in (queued, unqueued):
        counts.update({row.matrix_id: row.jobs for row in connection.execute(query)})
    return counts


def idle_devices(connection: Connection, device_ids: Collection[DeviceId]) -> list[DeviceId]:
    """Return those of these devices for which no job waits."""
    waits = sa.exists().where(
        jobs.c.device_id == devices.c.device_id, jobs.c.state == literal(JobState.QUEUED)
    )
    query = sa.select(devices.c.device_id).where(devices.c.device_id.in_(device_ids), ~waits)
    return list(connection.execute(query).scalars())


def retired_with_jobs(connection: Connection) -> list[DeviceId]:
    """Return retired devices with waiting jobs, such as jobs queued again after an attempt."""
    waits = sa.exists().where(
        jobs.c.device_id == devices.c.device_id, jobs.c.state == literal(JobState.QUEUED)
    )
    query = sa.select(devices.c.device_id).where(devices.c.admin == Admin.RETIRED, waits)
    return list(connection.execute(query).scalars())
