"""How a device's last attempts ended, as far as its health is concerned."""

from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId, JobId
from farm.core.checks.check_schedule import CHECKS_CONSIDERED, PastCheck
from farm.core.errors import Blame
from farm.core.jobs.job import JobKind, JobState
from farm.core.runs.measurement import Outcome
from farm.database.tables import attempts, jobs, word


@dataclass(frozen=True, slots=True, kw_only=True)
class PastOutcome:
    """One of them."""

    blame: Blame | None
    code: str | None
    #: What its job ended with; None while that is open, or where it ended well.
    job_code: str | None
    host_id: HostId
    claimed_at: datetime
    finished_at: datetime


def outcomes_since_check(connection: Connection, device_id: DeviceId, count: int) -> list[PastOutcome]:
    """The device's last ended attempts, newest first, back to its last check.

    A cancelled one says nothing of the phone.
    """
    query = (
        sa.select(
            attempts.c.blame,
            attempts.c.code,
            attempts.c.host_id,
            attempts.c.claimed_at,
            attempts.c.finished_at,
            jobs.c.kind,
            jobs.c.code.label("job_code"),
        )
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(
            attempts.c.device_id == device_id,
            attempts.c.outcome.is_not(None),
            attempts.c.outcome != Outcome.CANCELLED,
        )
        .order_by(attempts.c.fence.desc())
        .limit(count)
    )
    rows = connection.execute(query).all()
    return [
        PastOutcome(
            blame=None if row.blame is None else Blame(row.blame),
            code=row.code,
            job_code=row.job_code,
            host_id=row.host_id,
            claimed_at=row.claimed_at,
            finished_at=row.finished_at,
        )
        for row in takewhile(lambda row: row.kind != JobKind.CHECK, rows)
    ]


def last_checks(connection: Connection, device_id: DeviceId) -> list[PastCheck]:
    """The last ended checks of a device, newest first."""
    query = (
        sa.select(jobs.c.outcome, jobs.c.code, jobs.c.finished_at)
        .where(
            jobs.c.device_id == device_id,
            jobs.c.kind == word(JobKind.CHECK),
            jobs.c.state == JobState.FINISHED,
        )
        .order_by(jobs.c.job_id.desc())
        .limit(CHECKS_CONSIDERED)
    )
    return [
        PastCheck(outcome=Outcome(row.outcome), code=row.code, finished_at=row.finished_at)
        for row in connection.execute(query)
    ]


def last_check_id(connection: Connection, device_id: DeviceId) -> JobId | None:
    """The newest check of a device, ended or not."""
    query = sa.select(jobs.c.job_id).where(jobs.c.device_id == device_id, jobs.c.kind == word(JobKind.CHECK))
    return connection.execute(query.order_by(jobs.c.job_id.desc()).limit(1)).scalar()
