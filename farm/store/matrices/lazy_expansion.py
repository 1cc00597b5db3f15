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
from farm.core.matrices.job_template import Blueprint
from farm.database.tables import blueprints, matrices, unfoldings

_BLUEPRINT = TypeAdapter(Blueprint)
#: About so many jobs of a device are queued together: a cursor costs as much as several of them.
_SHARE = 50
_OPEN = unfoldings.c.cancelled_at.is_(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUnfolding:
    """A device whose jobs are to be queued in pieces."""

    device_id: DeviceId
    jobs: int
    first_turn: int
    last_turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What of a matrix is not queued yet on a device, or never will be."""

    device_id: DeviceId
    jobs: int
    unfolded: int
    first_turn: int
    is_cancelled: bool

    @property
    def count(self) -> int:
        """Jobs without a row."""
        return self.jobs - self.unfolded


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Jobs of one device that are queued together: from one, up to another that is not among them."""

    device_id: DeviceId
    start: int
    stop: int
    first_turn: int
    #: Whether these are the last.
    is_last: bool


def add_unfolding(
    connection: Connection,
    matrix_id: MatrixId,
    blueprint: bytes,
    devices: Sequence[NewUnfolding],
    *,
    priority: int,
    variant_ids: Collection[int],
    program_ids: Collection[int],
) -> None:
    """Have the jobs of a matrix queued later; `blueprint` is `packed`."""
    connection.execute(
        blueprints.insert().values(
            matrix_id=matrix_id,
            priority=priority,
            variant_ids=sorted(variant_ids),
            program_ids=sorted(program_ids),
            body=blueprint,
        )
    )
    rows = [
        {
            "matrix_id": matrix_id,
            "device_id": device.device_id,
            "jobs": device.jobs,
            "unfolded": 0,
            "first_turn": device.first_turn,
            "last_turn": device.last_turn,
        }
        for device in devices
    ]
    connection.execute(unfoldings.insert(), rows)


def packed(blueprint: Blueprint) -> bytes:
    """A blueprint as it is stored."""
    return zlib.compress(_BLUEPRINT.dump_json(blueprint), level=1)


def unpacked(body: bytes) -> Blueprint:
    """What `packed` made."""
    return _BLUEPRINT.validate_json(zlib.decompress(body))


def get_blueprint(connection: Connection, matrix_id: MatrixId) -> tuple[Blueprint, int]:
    """The blueprint of a matrix that is being unfolded, and the priority of its jobs."""
    row = connection.execute(sa.select(blueprints).where(blueprints.c.matrix_id == matrix_id)).one()
    return unpacked(row.body), row.priority


def next_matrix(connection: Connection, *, beside: Collection[MatrixId] = ()) -> MatrixId | None:
    """The one to go on with, of those that are being unfolded: the most urgent, and of these the one that
    lacks least, so that nobody's few thousand jobs wait for somebody's million. `beside` are left out.
    """
    left = sa.func.sum(unfoldings.c.jobs - unfoldings.c.unfolded)
    query = (
        sa.select(unfoldings.c.matrix_id)
        .join(blueprints, blueprints.c.matrix_id == unfoldings.c.matrix_id)
        .where(_OPEN, unfoldings.c.matrix_id.not_in(list(beside)))
        .group_by(unfoldings.c.matrix_id, blueprints.c.priority)
        .order_by(blueprints.c.priority.desc(), left, unfoldings.c.matrix_id)
        .limit(1)
    )
    return connection.execute(query).scalar()


def next_pieces(connection: Connection, matrix_id: MatrixId, *, jobs: int) -> list[Piece]:
    """What is to be queued next of a matrix: so many jobs, or a few more, of the devices that have fewest.

    Nothing, once all is queued or was cancelled.
    """
    rows = connection.execute(_next(), {"matrix": matrix_id, "devices": -(-jobs // _SHARE)}).all()
    share = -(-jobs // len(rows)) if rows else 0
    return [
        Piece(
            device_id=row.device_id,
            start=row.unfolded,
            stop=min(row.unfolded + share, row.jobs),
            first_turn=row.first_turn,
            is_last=row.unfolded + share >= row.jobs,
        )
        for row in rows
    ]


@cache
def _next() -> sa.Select[tuple[DeviceId, int, int, int]]:
    return (
        sa.select(unfoldings.c.device_id, unfoldings.c.unfolded, unfoldings.c.jobs, unfoldings.c.first_turn)
        .where(unfoldings.c.matrix_id == sa.bindparam("matrix"), _OPEN)
        .order_by(unfoldings.c.unfolded, unfoldings.c.device_id)
        .limit(sa.bindparam("devices"))
    )


def piece_to(connection: Connection, matrix_id: MatrixId, device_id: DeviceId, stop: int) -> Piece | None:
    """What a device still lacks of its first jobs; None when they are all queued, or will not be."""
    found = next((left for left in left_of(connection, matrix_id) if left.device_id == device_id), None)
    if found is None or found.is_cancelled or found.unfolded >= stop:
        return None
    return Piece(
        device_id=device_id,
        start=found.unfolded,
        stop=stop,
        first_turn=found.first_turn,
        is_last=stop == found.jobs,
    )


def move_cursors(connection: Connection, matrix_id: MatrixId, pieces: Sequence[Piece]) -> bool:
    """Say that pieces are queued; False where another was quicker with one, or it was cancelled meanwhile.

    The caller then takes all of it back.
    """
    moved = 0
    for change, own in (
        (_end(), [piece for piece in pieces if piece.is_last]),
        (_advance(), [piece for piece in pieces if not piece.is_last]),
    ):
        if own:
            moved += connection.execute(change, [_of_cursor(matrix_id, piece) for piece in own]).rowcount
    return moved == len(pieces)


def _of_cursor(matrix_id: MatrixId, piece: Piece) -> dict[str, object]:
    stop = {} if piece.is_last else {"stop": piece.stop}
    return {"matrix": matrix_id, "device": piece.device_id, "start": piece.start, **stop}


@cache
def _at_start() -> sa.ColumnElement[bool]:
    return sa.and_(
        unfoldings.c.matrix_id == sa.bindparam("matrix"),
        unfoldings.c.device_id == sa.bindparam("device"),
        unfoldings.c.unfolded == sa.bindparam("start"),
        _OPEN,
    )


@cache
def _end() -> sa.Delete:
    return unfoldings.delete().where(_at_start())


@cache
def _advance() -> sa.Update:
    return unfoldings.update().where(_at_start()).values(unfolded=sa.bindparam("stop"))


def drop_blueprint_if_done(connection: Connection, matrix_id: MatrixId) -> bool:
    """Let go of a blueprint once nothing is to be made from it; whether that was now."""
    wanted = sa.exists().where(unfoldings.c.matrix_id == matrix_id, _OPEN)
    done = blueprints.delete().where(blueprints.c.matrix_id == matrix_id, ~wanted)
    return connection.execute(done).rowcount == 1


def cancel_unfolding(
    connection: Connection, matrix_id: MatrixId, *, device_id: DeviceId | None = None, now: datetime
) -> int:
    """Have nothing more queued of a matrix, on one device or on any; how many jobs never will be."""
    update = unfoldings.update().where(_OPEN, unfoldings.c.matrix_id == matrix_id)
    if device_id is not None:
        update = update.where(unfoldings.c.device_id == device_id)
    left = unfoldings.c.jobs - unfoldings.c.unfolded
    ended = connection.execute(update.values(cancelled_at=now).returning(left)).scalars().all()
    if ended:
        drop_blueprint_if_done(connection, matrix_id)
    return sum(ended)


def left_of(connection: Connection, matrix_id: MatrixId) -> list[Left]:
    """What of a matrix has no rows, by device."""
    return left_by_matrix(connection, matrix_id).get(matrix_id, [])


def left_by_matrix(
    connection: Connection, matrix_id: MatrixId | None = None
) -> Mapping[MatrixId, list[Left]]:
    """As `left_of`, of all matrices or of one; those whose jobs all have their rows are missing."""
    query = sa.select(unfoldings).order_by(unfoldings.c.matrix_id, unfoldings.c.device_id)
    if matrix_id is not None:
        query = query.where(unfoldings.c.matrix_id == matrix_id)
    found: defaultdict[MatrixId, list[Left]] = defaultdict(list)
    for row in connection.execute(query):
        found[row.matrix_id].append(
            Left(
                device_id=row.device_id,
                jobs=row.jobs,
                unfolded=row.unfolded,
                first_turn=row.first_turn,
                is_cancelled=row.cancelled_at is not None,
            )
        )
    return found


def left_on(connection: Connection, device_id: DeviceId) -> dict[MatrixId, int]:
    """By matrix, how many jobs are still to be queued on a device."""
    left = unfoldings.c.jobs - unfoldings.c.unfolded
    query = sa.select(unfoldings.c.matrix_id, left.label("jobs")).where(
        unfoldings.c.device_id == device_id, _OPEN
    )
    return {row.matrix_id: row.jobs for row in connection.execute(query)}


def needs(connection: Connection) -> tuple[set[int], set[int]]:
    """The variants and programs of cells that may not be stored yet."""
    rows = connection.execute(sa.select(blueprints.c.variant_ids, blueprints.c.program_ids)).all()
    variant_ids = {variant_id for row in rows for variant_id in row.variant_ids}
    return variant_ids, {program_id for row in rows for program_id in row.program_ids}


def last_turns(
    connection: Connection, device_ids: Collection[DeviceId], *, priority: int, submitted_by: str
) -> dict[DeviceId, int]:
    """By device, the last turn of what somebody's matrices are still to queue there."""
    query = (
        sa.select(unfoldings.c.device_id, sa.func.max(unfoldings.c.last_turn).label("turn"))
        .join(blueprints, blueprints.c.matrix_id == unfoldings.c.matrix_id)
        .join(matrices, matrices.c.matrix_id == unfoldings.c.matrix_id)
        .where(
            _OPEN,
            blueprints.c.priority == priority,
            matrices.c.submitted_by == submitted_by,
            unfoldings.c.device_id.in_(list(device_ids)),
        )
        .group_by(unfoldings.c.device_id)
    )
    return {DeviceId(row.device_id): row.turn for row in connection.execute(query)}
