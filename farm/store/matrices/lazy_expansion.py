"""Matrices whose jobs are queued in pieces: their blueprints, and a cursor for each device."""

import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.matrices.job_template import JobTemplate
from farm.database.tables import job_templates, lazy_expansions, matrices

_BLUEPRINT = TypeAdapter(JobTemplate)
#: About so many jobs of a device are queued together: a cursor costs as much as several of them.
_JOBS_PER_CURSOR = 50
_OPEN = lazy_expansions.c.cancelled_at.is_(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLazyExpansion:
    """A device whose jobs are to be queued in pieces."""

    device_id: DeviceId
    jobs: int
    first_virtual_time: int
    last_virtual_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingJobs:
    """What of a matrix is not queued yet on a device, or never will be."""

    device_id: DeviceId
    jobs: int
    expanded_jobs: int
    first_virtual_time: int
    is_cancelled: bool

    @property
    def count(self) -> int:
        """Jobs without a row."""
        return self.jobs - self.expanded_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionBatch:
    """Jobs of one device that are queued together: from one, up to another that is not among them."""

    device_id: DeviceId
    start: int
    stop: int
    first_virtual_time: int
    #: Whether these are the last.
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
    """Have the jobs of a matrix queued later; `blueprint` is `packed`."""
    connection.execute(
        job_templates.insert().values(
            matrix_id=matrix_id,
            priority=priority,
            variant_ids=sorted(variant_ids),
            program_ids=sorted(program_ids),
            body=job_template,
        )
    )
    rows = [
        {
            "matrix_id": matrix_id,
            "device_id": device.device_id,
            "jobs": device.jobs,
            "expanded_jobs": 0,
            "first_virtual_time": device.first_virtual_time,
            "last_virtual_time": device.last_virtual_time,
        }
        for device in devices
    ]
    connection.execute(lazy_expansions.insert(), rows)


def pack_job_template(job_template: JobTemplate) -> bytes:
    """A blueprint as it is stored."""
    return zlib.compress(_BLUEPRINT.dump_json(job_template), level=1)


def unpack_job_template(body: bytes) -> JobTemplate:
    """What `packed` made."""
    return _BLUEPRINT.validate_json(zlib.decompress(body))


def get_job_template(connection: Connection, matrix_id: MatrixId) -> tuple[JobTemplate, int]:
    """The blueprint of a matrix that is being unfolded, and the priority of its jobs."""
    row = connection.execute(sa.select(job_templates).where(job_templates.c.matrix_id == matrix_id)).one()
    return unpack_job_template(row.body), row.priority


def next_matrix(connection: Connection, *, beside: Collection[MatrixId] = ()) -> MatrixId | None:
    """The one to go on with, of those that are being unfolded: the most urgent, and of these the one that
    lacks least, so that nobody's few thousand jobs wait for somebody's million. `beside` are left out.
    """
    left = sa.func.sum(lazy_expansions.c.jobs - lazy_expansions.c.expanded_jobs)
    query = (
        sa.select(lazy_expansions.c.matrix_id)
        .join(job_templates, job_templates.c.matrix_id == lazy_expansions.c.matrix_id)
        .where(_OPEN, lazy_expansions.c.matrix_id.not_in(list(beside)))
        .group_by(lazy_expansions.c.matrix_id, job_templates.c.priority)
        .order_by(job_templates.c.priority.desc(), left, lazy_expansions.c.matrix_id)
        .limit(1)
    )
    return connection.execute(query).scalar()


def next_batches(connection: Connection, matrix_id: MatrixId, *, jobs: int) -> list[ExpansionBatch]:
    """What is to be queued next of a matrix: so many jobs, or a few more, of the devices that have fewest.

    Nothing, once all is queued or was cancelled.
    """
    rows = connection.execute(
        _next_query(), {"matrix": matrix_id, "devices": -(-jobs // _JOBS_PER_CURSOR)}
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


@cache
def _next_query() -> sa.Select[tuple[DeviceId, int, int, int]]:
    return (
        sa.select(
            lazy_expansions.c.device_id,
            lazy_expansions.c.expanded_jobs,
            lazy_expansions.c.jobs,
            lazy_expansions.c.first_virtual_time,
        )
        .where(lazy_expansions.c.matrix_id == sa.bindparam("matrix"), _OPEN)
        .order_by(lazy_expansions.c.expanded_jobs, lazy_expansions.c.device_id)
        .limit(sa.bindparam("devices"))
    )


def batch_up_to(
    connection: Connection, matrix_id: MatrixId, device_id: DeviceId, stop: int
) -> ExpansionBatch | None:
    """What a device still lacks of its first jobs; None when they are all queued, or will not be."""
    found = next(
        (left for left in remaining_jobs(connection, matrix_id) if left.device_id == device_id), None
    )
    if found is None or found.is_cancelled or found.expanded_jobs >= stop:
        return None
    return ExpansionBatch(
        device_id=device_id,
        start=found.expanded_jobs,
        stop=stop,
        first_virtual_time=found.first_virtual_time,
        is_last=stop == found.jobs,
    )


def move_cursors(connection: Connection, matrix_id: MatrixId, pieces: Sequence[ExpansionBatch]) -> bool:
    """Say that pieces are queued; False where another was quicker with one, or it was cancelled meanwhile.

    The caller then takes all of it back.
    """
    moved = 0
    for change, own in (
        (_delete_statement(), [piece for piece in pieces if piece.is_last]),
        (_advance_statement(), [piece for piece in pieces if not piece.is_last]),
    ):
        if own:
            moved += connection.execute(change, [_of_cursor(matrix_id, piece) for piece in own]).rowcount
    return moved == len(pieces)


def _of_cursor(matrix_id: MatrixId, piece: ExpansionBatch) -> dict[str, object]:
    stop = {} if piece.is_last else {"stop": piece.stop}
    return {"matrix": matrix_id, "device": piece.device_id, "start": piece.start, **stop}


@cache
def _at_start() -> sa.ColumnElement[bool]:
    return sa.and_(
        lazy_expansions.c.matrix_id == sa.bindparam("matrix"),
        lazy_expansions.c.device_id == sa.bindparam("device"),
        lazy_expansions.c.expanded_jobs == sa.bindparam("start"),
        _OPEN,
    )


@cache
def _delete_statement() -> sa.Delete:
    return lazy_expansions.delete().where(_at_start())


@cache
def _advance_statement() -> sa.Update:
    return lazy_expansions.update().where(_at_start()).values(expanded_jobs=sa.bindparam("stop"))


def drop_job_template_if_done(connection: Connection, matrix_id: MatrixId) -> bool:
    """Let go of a blueprint once nothing is to be made from it; whether that was now."""
    wanted = sa.exists().where(lazy_expansions.c.matrix_id == matrix_id, _OPEN)
    done = job_templates.delete().where(job_templates.c.matrix_id == matrix_id, ~wanted)
    return connection.execute(done).rowcount == 1


def cancel_lazy_expansion(
    connection: Connection, matrix_id: MatrixId, *, device_id: DeviceId | None = None, now: datetime
) -> int:
    """Have nothing more queued of a matrix, on one device or on any; how many jobs never will be."""
    update = lazy_expansions.update().where(_OPEN, lazy_expansions.c.matrix_id == matrix_id)
    if device_id is not None:
        update = update.where(lazy_expansions.c.device_id == device_id)
    left = lazy_expansions.c.jobs - lazy_expansions.c.expanded_jobs
    ended = connection.execute(update.values(cancelled_at=now).returning(left)).scalars().all()
    if ended:
        drop_job_template_if_done(connection, matrix_id)
    return sum(ended)


def remaining_jobs(connection: Connection, matrix_id: MatrixId) -> list[RemainingJobs]:
    """What of a matrix has no rows, by device."""
    return remaining_jobs_by_matrix(connection, matrix_id).get(matrix_id, [])


def remaining_jobs_by_matrix(
    connection: Connection, matrix_id: MatrixId | None = None
) -> Mapping[MatrixId, list[RemainingJobs]]:
    """As `remaining_jobs`, of all matrices or of one; those whose jobs all have their rows are missing."""
    query = sa.select(lazy_expansions).order_by(lazy_expansions.c.matrix_id, lazy_expansions.c.device_id)
    if matrix_id is not None:
        query = query.where(lazy_expansions.c.matrix_id == matrix_id)
    found: defaultdict[MatrixId, list[RemainingJobs]] = defaultdict(list)
    for row in connection.execute(query):
        found[row.matrix_id].append(
            RemainingJobs(
                device_id=row.device_id,
                jobs=row.jobs,
                expanded_jobs=row.expanded_jobs,
                first_virtual_time=row.first_virtual_time,
                is_cancelled=row.cancelled_at is not None,
            )
        )
    return found


def remaining_counts_on(connection: Connection, device_id: DeviceId) -> dict[MatrixId, int]:
    """By matrix, how many jobs are still to be queued on a device."""
    left = lazy_expansions.c.jobs - lazy_expansions.c.expanded_jobs
    query = sa.select(lazy_expansions.c.matrix_id, left.label("jobs")).where(
        lazy_expansions.c.device_id == device_id, _OPEN
    )
    return {row.matrix_id: row.jobs for row in connection.execute(query)}


def needed_files(connection: Connection) -> tuple[set[int], set[int]]:
    """The variants and programs of cells that may not be stored yet."""
    rows = connection.execute(sa.select(job_templates.c.variant_ids, job_templates.c.program_ids)).all()
    variant_ids = {variant_id for row in rows for variant_id in row.variant_ids}
    return variant_ids, {program_id for row in rows for program_id in row.program_ids}


def last_virtual_times(
    connection: Connection, device_ids: Collection[DeviceId], *, priority: int, submitted_by: str
) -> dict[DeviceId, int]:
    """By device, the last virtual time of what somebody's matrices are still to queue there."""
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
