"""Lazy expansion of large matrices: their job templates, and a cursor for each device."""

import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.matrices.job_template import JobTemplate
from farm.database.rows import to_record
from farm.database.tables import job_templates, lazy_expansions, matrices
from farm.database.transaction import Tx

_JOB_TEMPLATE = TypeAdapter(JobTemplate)
#: About how many jobs of a device are queued together: moving a cursor costs as much as several jobs.
_JOBS_PER_CURSOR = 50
_OPEN = lazy_expansions.c.cancelled_at.is_(None)
_REMAINING = lazy_expansions.c.jobs - lazy_expansions.c.expanded_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLazyExpansion:
    """A device whose jobs of a matrix are queued in batches."""

    device_id: DeviceId
    jobs: int
    first_virtual_time: int
    last_virtual_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingJobs:
    """The jobs of a matrix on a device that are not queued yet, or never will be."""

    device_id: DeviceId
    jobs: int
    expanded_jobs: int
    first_virtual_time: int
    is_cancelled: bool

    @property
    def count(self) -> int:
        """The number of jobs without a row."""
        return self.jobs - self.expanded_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionBatch:
    """Jobs of one device that are queued together: from `start` to before `stop`."""

    device_id: DeviceId
    start: int
    stop: int
    first_virtual_time: int
    #: True if these are the last jobs of the device.
    is_last: bool


def add_lazy_expansion(
    connection: Connection,
    matrix_id: MatrixId,
    job_template: bytes,
    devices: Sequence[NewLazyExpansion],
    *,
    priority: int,
    variant_ids: Collection[int],
    program_ids: Collection[int],
) -> None:
    """Store a packed job template, from which the jobs of a matrix are queued later."""
    connection.execute(
        job_templates.insert().values(
            matrix_id=matrix_id,
            priority=priority,
            variant_ids=sorted(variant_ids),
            program_ids=sorted(program_ids),
            body=job_template,
        )
    )
    rows = [{"matrix_id": matrix_id, "expanded_jobs": 0, **asdict(device)} for device in devices]
    connection.execute(lazy_expansions.insert(), rows)


def pack_job_template(job_template: JobTemplate) -> bytes:
    """Compress a job template for storage."""
    return zlib.compress(_JOB_TEMPLATE.dump_json(job_template), level=1)


def unpack_job_template(body: bytes) -> JobTemplate:
    """Decompress a stored job template."""
    return _JOB_TEMPLATE.validate_json(zlib.decompress(body))


def get_job_template(connection: Connection, matrix_id: MatrixId) -> tuple[JobTemplate, int]:
    """Return the job template of a matrix in lazy expansion, and the priority of its jobs."""
    row = connection.execute(sa.select(job_templates).where(job_templates.c.matrix_id == matrix_id)).one()
    return unpack_job_template(row.body), row.priority


def next_matrix(connection: Connection, *, excluded: Collection[MatrixId] = ()) -> MatrixId | None:
    """Return the matrix to expand next: of the highest priority, the one with the fewest missing jobs.

    So a few thousand jobs never wait for another user's million. Matrices in `excluded` are left out.
    """
    query = (
        sa.select(lazy_expansions.c.matrix_id)
        .join(job_templates, job_templates.c.matrix_id == lazy_expansions.c.matrix_id)
        .where(_OPEN, lazy_expansions.c.matrix_id.not_in(list(excluded)))
        .group_by(lazy_expansions.c.matrix_id, job_templates.c.priority)
        .order_by(job_templates.c.priority.desc(), sa.func.sum(_REMAINING), lazy_expansions.c.matrix_id)
        .limit(1)
    )
    return connection.execute(query).scalar()


def count_remaining_jobs(connection: Connection, of_matrices: sa.ColumnElement[bool]) -> int:
    """Return the number of jobs that are still to be queued, of the matrices for which a condition holds."""
    query = sa.select(sa.func.coalesce(sa.func.sum(_REMAINING), 0)).join_from(lazy_expansions, matrices)
    return int(connection.execute(query.where(of_matrices, _OPEN)).scalar_one())


_NEXT_QUERY = (
    sa.select(
        lazy_expansions.c.device_id,
        lazy_expansions.c.expanded_jobs,
        lazy_expansions.c.jobs,
        lazy_expansions.c.first_virtual_time,
    )
    .where(lazy_expansions.c.matrix_id == sa.bindparam("matrix"), _OPEN)
    .order_by(lazy_expansions.c.expanded_jobs, lazy_expansions.c.device_id)
    .limit(sa.bindparam("devices", type_=sa.Integer))
)


def next_batches(connection: Connection, matrix_id: MatrixId, *, jobs: int) -> list[ExpansionBatch]:
    """Return the next batches of a matrix: about `jobs` jobs of the devices with the fewest queued ones.

    The list is empty once all jobs are queued or cancelled.
    """
    rows = connection.execute(
        _NEXT_QUERY, {"matrix": matrix_id, "devices": -(-jobs // _JOBS_PER_CURSOR)}
    ).all()
    share = -(-jobs // len(rows)) if rows else 0
    return [
        ExpansionBatch(
            device_id=row.device_id,
            start=row.expanded_jobs,
            stop=min(row.expanded_jobs + share, row.jobs),
            first_virtual_time=row.first_virtual_time,
            is_last=row.expanded_jobs + share >= row.jobs,
        )
        for row in rows
    ]


_AT_START = sa.and_(
    lazy_expansions.c.matrix_id == sa.bindparam("matrix"),
    lazy_expansions.c.device_id == sa.bindparam("device"),
    lazy_expansions.c.expanded_jobs == sa.bindparam("start"),
    _OPEN,
)
_DELETE_STATEMENT = lazy_expansions.delete().where(_AT_START)
_ADVANCE_STATEMENT = lazy_expansions.update().where(_AT_START).values(expanded_jobs=sa.bindparam("stop"))


def move_cursors(connection: Connection, matrix_id: MatrixId, batches: Sequence[ExpansionBatch]) -> bool:
    """Record that batches are queued; False if one was queued by another process or cancelled.

    The caller then rolls back.
    """
    moved = 0
    for is_last, change in ((True, _DELETE_STATEMENT), (False, _ADVANCE_STATEMENT)):
        cursors: list[dict[str, object]] = [
            {"matrix": matrix_id, "device": batch.device_id, "start": batch.start}
            | ({} if is_last else {"stop": batch.stop})
            for batch in batches
            if batch.is_last is is_last
        ]
        if cursors:
            moved += connection.execute(change, cursors).rowcount
    return moved == len(batches)


def drop_job_template_if_done(connection: Connection, matrix_id: MatrixId) -> bool:
    """Delete a job template without open expansions; True if it was deleted now."""
    is_needed = sa.exists().where(lazy_expansions.c.matrix_id == matrix_id, _OPEN)
    deletion = job_templates.delete().where(job_templates.c.matrix_id == matrix_id, ~is_needed)
    return connection.execute(deletion).rowcount == 1


def cancel_lazy_expansion(tx: Tx, matrix_id: MatrixId, *, device_id: DeviceId | None = None) -> int:
    """Cancel the lazy expansion of a matrix on one device or all; return the number of jobs never queued."""
    update = lazy_expansions.update().where(_OPEN, lazy_expansions.c.matrix_id == matrix_id)
    if device_id is not None:
        update = update.where(lazy_expansions.c.device_id == device_id)
    cancel = update.values(cancelled_at=tx.now).returning(_REMAINING)
    remaining_counts = tx.connection.execute(cancel).scalars().all()
    if remaining_counts:
        drop_job_template_if_done(tx.connection, matrix_id)
    return sum(remaining_counts)


def remaining_jobs(connection: Connection, matrix_id: MatrixId) -> list[RemainingJobs]:
    """Return the jobs of a matrix without rows, by device."""
    return remaining_jobs_by_matrix(connection, [matrix_id]).get(matrix_id, [])


def remaining_jobs_by_matrix(
    connection: Connection, matrix_ids: Collection[MatrixId]
) -> Mapping[MatrixId, list[RemainingJobs]]:
    """Return the jobs without rows of each of these matrices; those whose jobs all have rows are missing."""
    query = sa.select(lazy_expansions).order_by(lazy_expansions.c.matrix_id, lazy_expansions.c.device_id)
    query = query.where(lazy_expansions.c.matrix_id.in_(matrix_ids))
    remaining_by_matrix: defaultdict[MatrixId, list[RemainingJobs]] = defaultdict(list)
    for row in connection.execute(query):
        remaining_by_matrix[row.matrix_id].append(
            to_record(RemainingJobs, row, is_cancelled=row.cancelled_at is not None)
        )
    return remaining_by_matrix


def remaining_counts_on(connection: Connection, device_id: DeviceId) -> dict[MatrixId, int]:
    """Return by matrix how many jobs are still to be queued on a device."""
    query = sa.select(lazy_expansions.c.matrix_id, _REMAINING.label("jobs")).where(
        lazy_expansions.c.device_id == device_id, _OPEN
    )
    return {row.matrix_id: row.jobs for row in connection.execute(query)}


def needed_files(connection: Connection) -> tuple[set[int], set[int]]:
    """Return the ids of variants and programs of cells that may not be stored yet."""
    rows = connection.execute(sa.select(job_templates.c.variant_ids, job_templates.c.program_ids)).all()
    variant_ids = {variant_id for row in rows for variant_id in row.variant_ids}
    return variant_ids, {program_id for row in rows for program_id in row.program_ids}


def last_virtual_times(
    connection: Connection, device_ids: Collection[DeviceId], *, priority: int, submitted_by: str
) -> dict[DeviceId, int]:
    """Return by device the last virtual time of jobs that a submitter's matrices have still to queue."""
    query = (
        sa.select(
            lazy_expansions.c.device_id,
            sa.func.max(lazy_expansions.c.last_virtual_time).label("virtual_time"),
        )
        .join(job_templates, job_templates.c.matrix_id == lazy_expansions.c.matrix_id)
        .join(matrices, matrices.c.matrix_id == lazy_expansions.c.matrix_id)
        .where(
            _OPEN,
            job_templates.c.priority == priority,
            matrices.c.submitted_by == submitted_by,
            lazy_expansions.c.device_id.in_(list(device_ids)),
        )
        .group_by(lazy_expansions.c.device_id)
    )
    return {DeviceId(row.device_id): row.virtual_time for row in connection.execute(query)}
