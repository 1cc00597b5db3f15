"""Good devices that are due for a check, by time or by number of jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.checks.reference_run import ReferenceVerdict
from farm.core.devices.device import Admin, Health, Presence
from farm.core.jobs.job import JobKind, JobState
from farm.database.rows import to_record
from farm.database.tables import JOB_IS_QUEUED, attempts, devices, is_live, jobs, literal, reference_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCheck:
    """A good device that is due for a check."""

    device_id: DeviceId
    host_id: HostId
    checked_at: datetime
    #: The number of claims since then.
    claims: int


def checks_due(
    connection: Connection, *, checked_before: datetime, after_jobs: int, limit: int
) -> list[DueCheck]:
    """Return good, online devices with at least `after_jobs` claims since their last check, and those without
    work that were last checked before a time; the longest ago first.
    """
    last, check = _last_check(), jobs.alias("last_check")
    fence = _last_fence(check)
    claims = devices.c.fence - sa.func.coalesce(fence, devices.c.fence)
    query = (
        sa.select(
            devices.c.device_id,
            devices.c.host_id,
            check.c.finished_at.label("checked_at"),
            claims.label("claims"),
        )
        .select_from(devices)
        .join(check, check.c.job_id == last)
        .where(
            *_good_conditions(),
            check.c.state == JobState.FINISHED,
            sa.or_(
                claims >= after_jobs,
                sa.and_(check.c.finished_at <= checked_before, ~_has_work()),
            ),
        )
        .order_by(check.c.finished_at, devices.c.device_id)
        .limit(limit)
    )
    return [to_record(DueCheck, row) for row in connection.execute(query)]


def devices_with_unfit_runs(
    connection: Connection, *, checked_before: datetime
) -> list[tuple[DeviceId, HostId]]:
    """Return good, online devices without work whose last reference run, before a time, was unfit."""
    newest = sa.alias(reference_runs)
    last = (
        sa.select(newest.c.reference_run_id)
        .where(newest.c.device_id == devices.c.device_id)
        .order_by(newest.c.measured_at.desc(), newest.c.reference_run_id.desc())
        .limit(1)
        .correlate(devices)
        .scalar_subquery()
    )
    query = (
        sa.select(devices.c.device_id, devices.c.host_id)
        .select_from(devices)
        .join(reference_runs, reference_runs.c.reference_run_id == last)
        .where(
            *_good_conditions(),
            reference_runs.c.verdict == ReferenceVerdict.UNFIT,
            reference_runs.c.measured_at <= checked_before,
            ~_has_work(),
        )
        .order_by(devices.c.device_id)
    )
    return [(row.device_id, row.host_id) for row in connection.execute(query)]


def _good_conditions() -> Sequence[sa.ColumnElement[bool]]:
    return (
        devices.c.health == Health.GOOD,
        devices.c.admin == Admin.ACTIVE,
        devices.c.presence == Presence.ONLINE,
        devices.c.reserved_by.is_(None),
    )


def _last_check() -> sa.ScalarSelect[int]:
    check = jobs.alias()
    return (
        sa.select(check.c.job_id)
        .where(check.c.device_id == devices.c.device_id, check.c.kind == literal(JobKind.CHECK))
        .order_by(check.c.job_id.desc())
        .limit(1)
        .correlate(devices)
        .scalar_subquery()
    )


def _last_fence(check: sa.FromClause) -> sa.ScalarSelect[int]:
    return (
        sa.select(sa.func.max(attempts.c.fence))
        .where(attempts.c.job_id == check.c.job_id)
        .correlate(check)
        .scalar_subquery()
    )


def _has_work() -> sa.ColumnElement[bool]:
    waiting = sa.exists().where(jobs.c.device_id == devices.c.device_id, JOB_IS_QUEUED)
    is_running = sa.exists().where(attempts.c.device_id == devices.c.device_id, is_live(attempts))
    return sa.or_(waiting, is_running)
