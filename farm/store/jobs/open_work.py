"""Counts of the work of all devices that is not finished, from partial indexes alone."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.jobs.job import JobState
from farm.database.tables import attempts, is_live, jobs, literal


def count_queued(connection: Connection) -> int:
    """Count the jobs in the queues of all devices."""
    query = sa.select(sa.func.count()).select_from(jobs).where(jobs.c.state == literal(JobState.QUEUED))
    return connection.execute(query).scalar_one()


def count_running(connection: Connection) -> int:
    """Count the attempts under way."""
    query = sa.select(sa.func.count()).select_from(attempts).where(is_live(attempts))
    return connection.execute(query).scalar_one()
