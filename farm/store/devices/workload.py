"""The work of devices: last attempts, waiting jobs, and the use of what they share, CPUs and hosts."""

from collections import Counter
from collections.abc import Collection, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId, MatrixId
from farm.core.devices.device import Admin, Presence
from farm.database.rows import to_record
from farm.database.tables import JOB_IS_QUEUED, attempts, devices, is_live, jobs, lazy_expansions
from farm.wire.documents.devices import PastAttempt


def last_attempts(connection: Connection, device_id: DeviceId, *, limit: int) -> list[PastAttempt]:
    """Return the last attempts on a device, newest first."""
    query = (
        sa.select(attempts, jobs.c.kind)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(attempts.c.device_id == device_id)
        .order_by(attempts.c.fence.desc())
        .limit(limit)
    )
    return [to_record(PastAttempt, row) for row in connection.execute(query)]


def count_waiting(connection: Connection, device_ids: Collection[DeviceId]) -> Mapping[MatrixId | None, int]:
    """Return by matrix (None for checks) how many jobs wait for these devices, also those without a row."""
    of_jobs, of_cursors = jobs.c.device_id.in_(device_ids), lazy_expansions.c.device_id.in_(device_ids)
    remaining = sa.func.sum(lazy_expansions.c.jobs - lazy_expansions.c.expanded_jobs).label("jobs")
    queued = (
        sa.select(jobs.c.matrix_id, sa.func.count().label("jobs"))
        .where(of_jobs, JOB_IS_QUEUED)
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


_HAS_QUEUED_JOBS = sa.exists().where(jobs.c.device_id == devices.c.device_id, JOB_IS_QUEUED)


def idle_devices(connection: Connection, device_ids: Collection[DeviceId]) -> list[DeviceId]:
    """Return those of these devices for which no job waits."""
    query = sa.select(devices.c.device_id).where(devices.c.device_id.in_(device_ids), ~_HAS_QUEUED_JOBS)
    return list(connection.execute(query).scalars())


def retired_with_jobs(connection: Connection) -> list[DeviceId]:
    """Return retired devices with waiting jobs, such as jobs queued again after an attempt."""
    query = sa.select(devices.c.device_id).where(devices.c.admin == Admin.RETIRED, _HAS_QUEUED_JOBS)
    return list(connection.execute(query).scalars())


def runs_by_host(connection: Connection) -> Counter[HostId]:
    """Return the number of live attempts by host."""
    query = sa.select(attempts.c.host_id, sa.func.count()).where(is_live(attempts))
    return Counter(
        {HostId(host): count for host, count in connection.execute(query.group_by(attempts.c.host_id))}
    )


def busy_cpus(connection: Connection) -> set[str]:
    """Return the CPU domains with a live attempt."""
    query = sa.select(attempts.c.cpu_domain).where(is_live(attempts), attempts.c.cpu_domain.is_not(None))
    return set(connection.execute(query).scalars())


def uncleaned_cpus(connection: Connection) -> set[str]:
    """Return the CPU domains of online devices that need a clean-up."""
    query = sa.select(devices.c.cpu_domain).where(
        devices.c.cpu_domain.is_not(None),
        devices.c.presence == Presence.ONLINE,
        devices.c.cleaned_fence < devices.c.fence,
    )
    return set(connection.execute(query).scalars())


def unquiet_cpus(connection: Connection) -> set[str]:
    """Return the CPU domains with a live attempt, or with an online device that needs a clean-up."""
    return busy_cpus(connection) | uncleaned_cpus(connection)
