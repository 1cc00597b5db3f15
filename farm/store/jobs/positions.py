"""Positions of jobs in the queues of their devices."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.core.jobs.job import Job, JobState
from farm.database.tables import attempts, jobs, literal


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJobs:
    """The open jobs of a matrix on a device."""

    queued: int = 0
    #: The one that runs first.
    first_queued: JobId | None = None
    active: JobId | None = None


def count_before(connection: Connection, job: Job, *, limit: int) -> int:
    """Count the jobs ahead of one in its device's queue, up to a limit.

    Three ranges of the index: higher priority, earlier virtual time, lower job number.
    """
    alike = jobs.c.priority == job.priority
    ranges = (
        jobs.c.priority > job.priority,
        sa.and_(alike, jobs.c.virtual_time < job.virtual_time),
        sa.and_(alike, jobs.c.virtual_time == job.virtual_time, jobs.c.job_id < job.job_id),
    )
    counted = 0
    for before in ranges:
        counted += _count(connection, job, before, limit - counted)
    return counted


def _count(connection: Connection, job: Job, before: sa.ColumnElement[bool], limit: int) -> int:
    queued = (
        sa.select(jobs.c.job_id)
        .where(jobs.c.device_id == job.device_id, jobs.c.state == literal(JobState.QUEUED), before)
        .limit(limit)
        .subquery()
    )
    return connection.execute(sa.select(sa.func.count()).select_from(queued)).scalar_one()


def open_jobs(connection: Connection, matrix_id: MatrixId) -> Mapping[DeviceId, OpenJobs]:
    """Return the open jobs of a matrix by device; devices without open jobs are missing.

    Jobs of a matrix have one priority; virtual times rise with job numbers, so the lowest number runs first.
    """
    query = (
        sa.select(jobs.c.device_id, jobs.c.state, sa.func.count().label("jobs"), sa.func.min(jobs.c.job_id))
        .where(jobs.c.matrix_id == matrix_id, jobs.c.state.in_((JobState.QUEUED, JobState.ACTIVE)))
        .group_by(jobs.c.device_id, jobs.c.state)
        .order_by(jobs.c.device_id)
    )
    found: dict[DeviceId, OpenJobs] = {}
    for device_id, state, count, first in connection.execute(query):
        known = found.get(device_id, OpenJobs())
        if state == JobState.ACTIVE:
            found[device_id] = OpenJobs(queued=known.queued, first_queued=known.first_queued, active=first)
        else:
            found[device_id] = OpenJobs(queued=count, first_queued=first, active=known.active)
    return found


def last_progress_at(connection: Connection, matrix_id: MatrixId) -> datetime | None:
    """Return when a job of a matrix last began or ended; None if none has."""
    ended = connection.execute(
        sa.select(sa.func.max(jobs.c.finished_at)).where(
            jobs.c.matrix_id == matrix_id, jobs.c.state == JobState.FINISHED
        )
    ).scalar()
    claimed = connection.execute(
        sa.select(sa.func.max(attempts.c.claimed_at))
        .join(jobs, jobs.c.attempt_id == attempts.c.attempt_id)
        .where(jobs.c.matrix_id == matrix_id, jobs.c.state == JobState.ACTIVE)
    ).scalar()
    return max(filter(None, (ended, claimed)), default=None)
