"""Standing matrices, and the matrix that last measured each of their cells at its versions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, Digest, MatrixId
from farm.core.errors import NotFound
from farm.core.jobs.job import JobState
from farm.core.matrices.standing import StandingSpec
from farm.core.operations.event import FurtherWorkEvent
from farm.database.rows import find_record, insert_rows, is_among, to_record
from farm.database.tables import jobs, lazy_expansions, literal, standing_cells, standing_matrices
from farm.database.transaction import Tx
from farm.store.operations.events import record_event

_SPEC = TypeAdapter(StandingSpec)
_STANDING = sa.select(standing_matrices).where(standing_matrices.c.ended_at.is_(None))
#: Digests that one statement names.
_DIGESTS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingMatrix:
    """A standing matrix's row."""

    standing_id: int
    name: str
    spec: StandingSpec
    #: The actor whose work its matrices are.
    submitted_by: str
    created_at: datetime
    changed_at: datetime
    ended_at: datetime | None
    #: None without a schedule.
    next_due_at: datetime | None
    #: The reason why nothing could be queued at the last look.
    problem: str | None


def list_standing(connection: Connection) -> list[StandingMatrix]:
    """Return the matrices that stand, by name."""
    rows = connection.execute(_STANDING.order_by(standing_matrices.c.name))
    return [to_record(StandingMatrix, row) for row in rows]


def find_standing(connection: Connection, name: str) -> StandingMatrix | None:
    """Return the matrix of a name that stands, or None."""
    return find_record(connection, StandingMatrix, _STANDING.where(standing_matrices.c.name == name))


def find_last_standing(connection: Connection, name: str) -> StandingMatrix | None:
    """Return the matrix of a name that stands, else the one that ended last, or None."""
    query = sa.select(standing_matrices).where(standing_matrices.c.name == name)
    return find_record(
        connection, StandingMatrix, query.order_by(standing_matrices.c.standing_id.desc()).limit(1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedStanding:
    """A matrix that stands and cannot go on."""

    standing_id: int
    name: str
    problem: str


def blocked_standing_matrices(connection: Connection) -> list[BlockedStanding]:
    """Return the matrices that stand and cannot go on, by number."""
    columns = (standing_matrices.c[name] for name in BlockedStanding.__dataclass_fields__)
    query = sa.select(*columns).where(
        standing_matrices.c.ended_at.is_(None), standing_matrices.c.problem.is_not(None)
    )
    rows = connection.execute(query.order_by(standing_matrices.c.standing_id))
    return [to_record(BlockedStanding, row) for row in rows]


def get_standing(connection: Connection, standing_id: int) -> StandingMatrix:
    """Return a matrix that stands.

    Raises:
        NotFound: there is none of this number.
    """
    query = _STANDING.where(standing_matrices.c.standing_id == standing_id)
    if (standing := find_record(connection, StandingMatrix, query)) is None:
        message = f"no matrix stands under the number {standing_id}"
        raise NotFound(message, hint="`farm matrix standing` lists them")
    return standing


def put_standing(tx: Tx, spec: StandingSpec, *, next_due_at: datetime | None) -> int:
    """Let a matrix stand, or replace the spec of the one of its name; return its number.

    One that has ended goes on: what it measured at the present versions is not missing.
    """
    last = find_last_standing(tx.connection, spec.matrix.name)
    values = {
        "spec": _SPEC.dump_python(spec, mode="json"),
        "submitted_by": tx.actor,
        "changed_at": tx.now,
        "next_due_at": next_due_at,
        "problem": None,
    }
    cause = None if spec.schedule is None else f"at {spec.schedule}"
    if last is not None and last.ended_at is None:
        _update(tx.connection, last.standing_id, **values)
        record_event(tx, FurtherWorkEvent.STANDING_CHANGED, spec.matrix.name, cause=cause)
        return last.standing_id
    record_event(tx, FurtherWorkEvent.STANDS, spec.matrix.name, cause=cause)
    if last is not None:
        _update(tx.connection, last.standing_id, **values, created_at=tx.now, ended_at=None)
        return last.standing_id
    insert = standing_matrices.insert().values(**values, name=spec.matrix.name, created_at=tx.now)
    inserted = tx.connection.execute(insert.returning(standing_matrices.c.standing_id))
    return int(inserted.scalar_one())


def end_standing(tx: Tx, standing: StandingMatrix) -> None:
    """End a standing matrix: nothing is queued for it any more."""
    _update(tx.connection, standing.standing_id, ended_at=tx.now, next_due_at=None)
    record_event(tx, FurtherWorkEvent.STANDING_ENDED, standing.name)


def put_problem(tx: Tx, standing: StandingMatrix, problem: str | None) -> None:
    """Record why a standing matrix cannot go on now, or that it can again."""
    if problem == standing.problem:
        return
    _update(tx.connection, standing.standing_id, problem=problem)
    kind = FurtherWorkEvent.STANDING_UNBLOCKED if problem is None else FurtherWorkEvent.STANDING_BLOCKED
    record_event(tx, kind, standing.name, cause=problem)


def put_next_due(tx: Tx, standing: StandingMatrix, next_due_at: datetime | None) -> None:
    """Move a standing matrix to the next session of its schedule."""
    _update(tx.connection, standing.standing_id, next_due_at=next_due_at)


def _update(connection: Connection, standing_id: int, **values: object) -> None:
    of_id = standing_matrices.c.standing_id == standing_id
    connection.execute(standing_matrices.update().where(of_id).values(values))


@dataclass(frozen=True, slots=True)
class QueuedCell:
    """A cell of the matrix that last measured it."""

    matrix_id: MatrixId
    cell_index: int


def queued_cells(connection: Connection, standing_id: int) -> dict[Digest, QueuedCell]:
    """Return the cells of a standing matrix that were ever queued, by their version digest."""
    query = sa.select(
        standing_cells.c.version_digest, standing_cells.c.matrix_id, standing_cells.c.cell_index
    ).where(standing_cells.c.standing_id == standing_id)
    return {digest: QueuedCell(matrix_id, index) for digest, matrix_id, index in connection.execute(query)}


def last_matrix(connection: Connection, standing_id: int) -> MatrixId | None:
    """Return the newest matrix of a standing one; None before the first."""
    query = sa.select(sa.func.max(standing_cells.c.matrix_id))
    return connection.execute(query.where(standing_cells.c.standing_id == standing_id)).scalar()


def put_queued_cells(
    connection: Connection, standing_id: int, matrix_id: MatrixId, index_by_digest: Mapping[Digest, int]
) -> None:
    """Record that a matrix measures these cells, by their index in it."""
    digests = sorted(index_by_digest)
    for first in range(0, len(digests), _DIGESTS_AT_ONCE):
        connection.execute(
            standing_cells.delete().where(
                standing_cells.c.standing_id == standing_id,
                standing_cells.c.version_digest.in_(digests[first : first + _DIGESTS_AT_ONCE]),
            )
        )
    rows = [(digest, index_by_digest[digest]) for digest in digests]
    same = {"standing_id": standing_id, "matrix_id": matrix_id}
    insert_rows(connection, standing_cells, ("version_digest", "cell_index"), rows, same=same)


def busy_devices(connection: Connection, matrix_ids: Sequence[MatrixId]) -> set[DeviceId]:
    """Return the devices on which one of these matrices is not over."""
    open_jobs = sa.select(jobs.c.device_id).where(
        is_among(connection, jobs.c.matrix_id, matrix_ids),
        jobs.c.state.in_([literal(JobState.QUEUED), literal(JobState.ACTIVE)]),
    )
    expanding = {device_id for _, device_id in expanding_devices(connection, matrix_ids)}
    return expanding | {*connection.execute(open_jobs.distinct()).scalars()}


def expanding_devices(
    connection: Connection, matrix_ids: Collection[MatrixId]
) -> set[tuple[MatrixId, DeviceId]]:
    """Return matrices and devices whose cells are not all stored yet."""
    query = sa.select(lazy_expansions.c.matrix_id, lazy_expansions.c.device_id).where(
        is_among(connection, lazy_expansions.c.matrix_id, matrix_ids),
        lazy_expansions.c.cancelled_at.is_(None),
    )
    return {(matrix_id, device_id) for matrix_id, device_id in connection.execute(query)}
