"""The queue of each device: waiting jobs by priority, then by virtual time."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, Digest, HostId, JobId
from farm.core.jobs.job import Job, JobKind, JobState
from farm.database.tables import cells, devices, jobs, literal, program_files, variants
from farm.store.jobs.jobs import job_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NextJobFiles:
    """The artifacts that a device's next job needs; none for a check, which has no cell."""

    digests: tuple[Digest, ...]


def queue_heads(connection: Connection, device_ids: Collection[DeviceId]) -> dict[DeviceId, Job]:
    """Return the next job of each device; devices without one are missing.

    An index lookup for each, whatever the length of its queue.
    """
    if not device_ids:
        return {}
    found = connection.execute(_heads_query(), {"device_ids": list(device_ids)})
    return {row.device_id: job_of(row) for row in found}


def queued_checks(connection: Connection, device_ids: Collection[DeviceId]) -> dict[DeviceId, Job]:
    """Return the queued check of each device; devices without one are missing."""
    if not device_ids:
        return {}
    query = sa.select(jobs).where(
        jobs.c.device_id.in_(list(device_ids)),
        jobs.c.kind == literal(JobKind.CHECK),
        # As the partial index has it: of open checks, a device has one at most.
        jobs.c.state != literal(JobState.FINISHED),
        jobs.c.state == literal(JobState.QUEUED),
    )
    return {row.device_id: job_of(row) for row in connection.execute(query)}


def next_job_files(connection: Connection, host_id: HostId) -> list[NextJobFiles]:
    """Return the files of the next job of each device of a host; devices without one are missing."""
    digests_by_job: dict[JobId, list[Digest]] = {}
    for row in connection.execute(_files_of_heads_query(), {"host_id": host_id}):
        digests_by_job.setdefault(row.job_id, []).extend(filter(None, (row.variant, row.program)))
    return [
        NextJobFiles(digests=tuple(dict.fromkeys(digests))) for _, digests in sorted(digests_by_job.items())
    ]


@cache
def _heads_query() -> sa.Select[Any]:
    """Build the query once: every exchange runs it."""
    asked = devices.c.device_id.in_(sa.bindparam("device_ids", expanding=True))
    return sa.select(jobs).select_from(devices).join(jobs, jobs.c.job_id == _head()).where(asked)


@cache
def _files_of_heads_query() -> sa.Select[Any]:
    return (
        sa.select(jobs.c.job_id, variants.c.digest.label("variant"), program_files.c.digest.label("program"))
        .select_from(devices)
        .join(jobs, jobs.c.job_id == _head())
        .outerjoin(cells, cells.c.cell_id == jobs.c.cell_id)
        .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
        .outerjoin(program_files, program_files.c.program_id == cells.c.program_id)
        .where(devices.c.host_id == sa.bindparam("host_id"))
    )


def _head() -> sa.ScalarSelect[JobId]:
    return (
        sa.select(jobs.c.job_id)
        .where(jobs.c.device_id == devices.c.device_id, jobs.c.state == literal(JobState.QUEUED))
        .order_by(jobs.c.priority.desc(), jobs.c.virtual_time, jobs.c.job_id)
        .limit(1)
        .correlate(devices)
        .scalar_subquery()
    )
