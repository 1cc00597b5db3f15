"""The work of all devices that is not finished, from partial indexes alone."""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, MatrixId
from farm.core.jobs.job import JobKind
from farm.database.rows import to_record
from farm.database.tables import JOB_IS_QUEUED, attempts, cells, is_live, jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """What runs on a device; a check has no cell."""

    device_id: DeviceId
    attempt_id: AttemptId
    kind: JobKind
    matrix_id: MatrixId | None
    label: str | None
    round: int


def count_queued(connection: Connection) -> int:
    """Count the jobs in the queues of all devices."""
    # The range of all devices: without one, SQLite reads another index from end to end.
    query = sa.select(sa.func.count()).select_from(jobs).where(JOB_IS_QUEUED, jobs.c.device_id > "")
    return connection.execute(query).scalar_one()


def count_running(connection: Connection) -> int:
    """Count the attempts under way."""
    query = sa.select(sa.func.count()).select_from(attempts).where(is_live(attempts))
    return connection.execute(query).scalar_one()


def live_runs(connection: Connection, device_ids: Collection[DeviceId]) -> dict[DeviceId, LiveRun]:
    """Return what runs on these devices."""
    query = (
        sa.select(
            attempts.c.device_id,
            attempts.c.attempt_id,
            jobs.c.kind,
            jobs.c.matrix_id,
            jobs.c.round,
            cells.c.label,
        )
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .outerjoin(cells, cells.c.cell_id == jobs.c.cell_id)
        .where(is_live(attempts), attempts.c.device_id.in_(list(device_ids)))
    )
    return {row.device_id: to_record(LiveRun, row) for row in connection.execute(query)}
