"""Queues the jobs of large matrices in pieces, each in a short transaction of its own.

A million rows in one transaction would keep every agent waiting for as long as they take. Whoever submits
such a matrix is answered once its blueprint is stored; what is left is queued by any farm process, from where
the cursors stand. A cursor moves by compare-and-set with the rows that it counts: a process that is killed
leaves no half piece behind, and of two at work one finds nothing to do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.jobs.fair_share import round_turn
from farm.core.matrices.job_template import Blueprint, Unfolding
from farm.database.notifications import concerns_devices
from farm.services.jobs.termination import end_killers_queued
from farm.store.devices import workload
from farm.store.jobs import jobs
from farm.store.jobs.jobs import NewJob
from farm.store.matrices import lazy_expansion, matrices
from farm.store.matrices.lazy_expansion import Piece
from farm.store.matrices.matrices import NewCell

#: A matrix of no more jobs is queued as it is submitted.
INLINE_JOBS = 2000
#: Jobs that one transaction queues: so long, and no longer, an agent may have to wait for its turn.
CHUNK_JOBS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Pieces of several devices, with the cells that they are the first to need."""

    pieces: Sequence[Piece]
    cells: Sequence[NewCell]
    #: Cell index, device, round and turn of each job, by device in the order it runs them.
    jobs: Sequence[tuple[int, DeviceId, int, int]]


class ChunkMaker:
    """Makes the rows of a matrix from its blueprint; keeps the order of the round that each device is in."""

    def __init__(
        self, blueprint: Blueprint, *, matrix_id: MatrixId, priority: int, created_at: datetime
    ) -> None:
        """For one matrix."""
        self.matrix_id = matrix_id
        self.priority = priority
        self.created_at = created_at
        self._rounds = blueprint.rounds
        self._by_device = {part.device_id: Unfolding(blueprint, part) for part in blueprint.parts}

    def chunk(self, pieces: Sequence[Piece]) -> Chunk:
        """The rows of some pieces."""
        cells: list[NewCell] = []
        rows: list[tuple[int, DeviceId, int, int]] = []
        for piece in pieces:
            unfolding = self._by_device[piece.device_id]
            own = list(unfolding.jobs(piece.start, piece.stop))
            cells += _new_cells(unfolding, (job.index for job in own if job.round == 1))
            for job in own:
                turn = round_turn(piece.first_turn, round=job.round, cells=unfolding.cell_count)
                rows.append((job.index, piece.device_id, job.round, turn))
        return Chunk(pieces=pieces, cells=sorted(cells), jobs=rows)

    def whole(self, first_turns: Mapping[DeviceId, int]) -> Chunk:
        """All rows of a small matrix."""
        pieces = [
            Piece(
                device_id=device_id,
                start=0,
                stop=unfolding.job_count,
                first_turn=first_turns[device_id],
                is_last=True,
            )
            for device_id, unfolding in self._by_device.items()
        ]
        return self.chunk(pieces)

    def jobs_of_rounds(self, device_id: DeviceId, rounds: int) -> int:
        """How many jobs a device has in its first rounds."""
        return self._by_device[device_id].cell_count * rounds


def _new_cells(unfolding: Unfolding, indexes: Iterable[int]) -> Iterable[NewCell]:
    return (
        NewCell(
            cell_index=placed.index,
            device_id=unfolding.part.device_id,
            variant_id=placed.slot.variant_id,
            program_id=unfolding.part.program_id,
            backend=placed.slot.backend,
            settings=unfolding.settings(placed.slot),
            replica=placed.slot.replica,
            label=placed.slot.label,
            baseline_index=placed.baseline_index,
        )
        for placed in unfolding.cells(indexes)
    )


def open_maker(connection: Connection, matrix_id: MatrixId) -> ChunkMaker | None:
    """What makes the rows of a matrix; None when all of them are made, or will not be."""
    if all(left.is_cancelled for left in lazy_expansion.left_of(connection, matrix_id)):
        return None
    blueprint, priority = lazy_expansion.get_blueprint(connection, matrix_id)
    created_at = matrices.get_matrix(connection, matrix_id).created_at
    return ChunkMaker(blueprint, matrix_id=matrix_id, priority=priority, created_at=created_at)


def put_chunk(connection: Connection, maker: ChunkMaker, chunk: Chunk, *, now: datetime) -> bool:
    """Move the cursors and store what they count; nothing, and False, where one has moved on."""
    with connection.begin_nested() as savepoint:
        if not lazy_expansion.move_cursors(connection, maker.matrix_id, chunk.pieces):
            savepoint.rollback()
            return False
    idle = workload.without_queue(connection, [piece.device_id for piece in chunk.pieces])
    concerns_devices(connection, idle)
    put_rows(connection, maker, chunk)
    lazy_expansion.drop_blueprint_if_done(connection, maker.matrix_id)
    end_killers_queued(connection, maker.matrix_id, now=now)
    return True


def put_rows(connection: Connection, maker: ChunkMaker, chunk: Chunk) -> None:
    """Store cells and queue their jobs."""
    matrices.add_cells(connection, maker.matrix_id, chunk.cells)
    indexes = [row[0] for row in chunk.jobs]
    id_by_index = matrices.cell_ids(connection, maker.matrix_id, indexes)
    new_jobs = [
        NewJob(device_id, id_by_index[index], round, turn) for index, device_id, round, turn in chunk.jobs
    ]
    jobs.add_jobs(connection, maker.matrix_id, new_jobs, priority=maker.priority, now=maker.created_at)


def unfold_rounds(
    connection: Connection, matrix_id: MatrixId, device_id: DeviceId, *, rounds: int, now: datetime
) -> None:
    """See to it that a device has its first rounds whole, at once: one of them is to be repeated."""
    if (maker := open_maker(connection, matrix_id)) is None:
        return
    stop = maker.jobs_of_rounds(device_id, rounds)
    if (piece := lazy_expansion.piece_to(connection, matrix_id, device_id, stop)) is not None:
        put_chunk(connection, maker, maker.chunk([piece]), now=now)
