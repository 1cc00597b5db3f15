"""The queue of each device: waiting jobs by priority, then by virtual time."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, Digest, HostId, JobId
from farm.core.jobs.job import Job
from farm.database.rows import to_record
from farm.database.tables import (
    JOB_IS_CHECK,
    JOB_IS_QUEUED,
    JOB_IS_UNFINISHED,
    attempts,
    cells,
    devices,
    is_live,
    jobs,
    program_files,
    programs,
    variant_files,
    variants,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanKey:
    """The rows that the run plan of a benchmark job is made of, in their present version."""

    cell_id: CellId
    program_digest: Digest
    #: Registering the same program again may change which flags it does not have.
    program_chosen_at: datetime
    #: Of the variant, whose manifest changes with it; None where the harness runs no model.
    recipe_digest: Digest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextJobFiles:
    """The artifacts that a device's next job needs; none for a check, which has no cell."""

    digests: tuple[Digest, ...]


def head_of_queue() -> sa.ScalarSelect[JobId]:
    """Return the subquery of the next job of a device."""
    return (
        sa.select(jobs.c.job_id)
        .where(jobs.c.device_id == devices.c.device_id, JOB_IS_QUEUED)
        .order_by(jobs.c.priority.desc(), jobs.c.virtual_time, jobs.c.job_id)
        .limit(1)
        .correlate(devices)
        .scalar_subquery()
    )


_HEADS_QUERY = (
    sa.select(jobs)
    .select_from(devices)
    .join(jobs, jobs.c.job_id == head_of_queue())
    .where(devices.c.device_id.in_(sa.bindparam("device_ids", expanding=True)))
)


def queue_heads(connection: Connection, device_ids: Collection[DeviceId]) -> dict[DeviceId, Job]:
    """Return the next job of each device; devices without one are missing.

    An index lookup for each, whatever the length of its queue.
    """
    if not device_ids:
        return {}
    rows = connection.execute(_HEADS_QUERY, {"device_ids": list(device_ids)})
    return {row.device_id: to_record(Job, row) for row in rows}


def queued_checks(connection: Connection, device_ids: Collection[DeviceId]) -> dict[DeviceId, Job]:
    """Return the queued check of each device; devices without one are missing."""
    if not device_ids:
        return {}
    query = sa.select(jobs).where(
        jobs.c.device_id.in_(list(device_ids)),
        JOB_IS_CHECK,
        # As the partial index has it: of open checks, a device has one at most.
        JOB_IS_UNFINISHED,
        JOB_IS_QUEUED,
    )
    return {row.device_id: to_record(Job, row) for row in connection.execute(query)}


_PLAN_KEY = (
    programs.c.digest.label("program_digest"),
    programs.c.chosen_at.label("program_chosen_at"),
    variants.c.recipe_digest,
)
_NEXT_JOBS_QUERY = (
    sa.select(jobs, *_PLAN_KEY)
    .select_from(devices)
    .join(jobs, jobs.c.job_id == head_of_queue())
    .join(cells, cells.c.cell_id == jobs.c.cell_id)
    .join(programs, programs.c.program_id == cells.c.program_id)
    .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
    .where(
        devices.c.host_id == sa.bindparam("host_id"),
        ~sa.exists().where(is_live(attempts), attempts.c.device_id == devices.c.device_id),
    )
)


def next_jobs_by_plan(connection: Connection, host_id: HostId) -> dict[PlanKey, Job]:
    """Return the next job of each device of a host that has no live attempt; checks are missing."""
    rows = connection.execute(_NEXT_JOBS_QUERY, {"host_id": host_id})
    return {to_record(PlanKey, row): to_record(Job, row) for row in rows}


_PLAN_KEYS_QUERY = (
    sa.select(cells.c.cell_id, *_PLAN_KEY)
    .join(programs, programs.c.program_id == cells.c.program_id)
    .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
    .where(cells.c.cell_id.in_(sa.bindparam("cell_ids", expanding=True)))
)


def plan_keys(connection: Connection, jobs: Iterable[Job]) -> dict[JobId, PlanKey]:
    """Return the plan keys of benchmark jobs; checks are missing."""
    cell_by_job = {job.job_id: job.cell_id for job in jobs if job.cell_id is not None}
    if not cell_by_job:
        return {}
    rows = connection.execute(_PLAN_KEYS_QUERY, {"cell_ids": list(set(cell_by_job.values()))})
    key_by_cell = {row.cell_id: to_record(PlanKey, row) for row in rows}
    return {job_id: key_by_cell[cell_id] for job_id, cell_id in cell_by_job.items()}


_FILES_OF_HEADS_QUERY = (
    sa.select(jobs.c.job_id, variant_files.c.digest.label("variant"), program_files.c.digest.label("program"))
    .select_from(devices)
    .join(jobs, jobs.c.job_id == head_of_queue())
    .outerjoin(cells, cells.c.cell_id == jobs.c.cell_id)
    .outerjoin(variant_files, variant_files.c.variant_id == cells.c.variant_id)
    .outerjoin(program_files, program_files.c.program_id == cells.c.program_id)
    .where(devices.c.host_id == sa.bindparam("host_id"))
)


def next_job_files(connection: Connection, host_id: HostId) -> list[NextJobFiles]:
    """Return the files of the next job of each device of a host; devices without one are missing."""
    digests_by_job: dict[JobId, list[Digest]] = {}
    for row in connection.execute(_FILES_OF_HEADS_QUERY, {"host_id": host_id}):
        digests_by_job.setdefault(row.job_id, []).extend(filter(None, (row.variant, row.program)))
    return [
        NextJobFiles(digests=tuple(dict.fromkeys(digests))) for _, digests in sorted(digests_by_job.items())
    ]
