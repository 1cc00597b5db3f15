"""How a device's last checks ended."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.checks.check_schedule import CHECKS_CONSIDERED, PastCheck
from farm.core.jobs.job import JobKind, JobState
from farm.core.runs.measurement import Outcome
from farm.database.tables import jobs, literal


def last_checks(connection: Connection, device_id: DeviceId) -> list[PastCheck]:
    """Return the last finished checks of a device, newest first."""
    query = (
        sa.select(jobs.c.outcome, jobs.c.code, jobs.c.finished_at)
        .where(
            jobs.c.device_id == device_id,
            jobs.c.kind == literal(JobKind.CHECK),
            jobs.c.state == JobState.FINISHED,
        )
        .order_by(jobs.c.job_id.desc())
        .limit(CHECKS_CONSIDERED)
    )
    return [
        PastCheck(outcome=Outcome(row.outcome), code=row.code, finished_at=row.finished_at)
        for row in connection.execute(query)
    ]
