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
from farm.core.jobs.fair_share import round_virtual_time
from farm.core.jobs.poison_job import poisoned_devices
from farm.core.matrices.job_template import DeviceExpansion, JobTemplate
from farm.core.results.settle.consequences import poison_outcome
from farm.core.results.settle.effects import EndJob
from farm.database.notifications import notify_hosts_of_devices
from farm.store.devices import workload as device_workload
from farm.store.jobs import jobs
from farm.store.jobs.jobs import NewJob
from farm.store.matrices import equivalent_cells, lazy_expansion, matrices
from farm.store.matrices.lazy_expansion import ExpansionBatch
from farm.store.matrices.matrices import NewCell
from farm.store.results.settle.effects import write

#: A matrix of no more jobs is queued as it is submitted.
INLINE_JOBS = 2000
#: Jobs that one transaction queues: so long, and no longer, an agent may have to wait for its turn.
CHUNK_JOBS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """Pieces of several devices, with the cells that they are the first to need."""

    pieces: Sequence[ExpansionBatch]
    cells: Sequence[NewCell]
    #: Cell index, device, round and virtual_time of each job, by device in the order it runs them.
    jobs: Sequence[tuple[int, DeviceId, int, int]]


class RowBuilder:
    """Makes the rows of a matrix from its blueprint; keeps the order of the round that each device is in."""

    def __init__(
        self, job_template: JobTemplate, *, matrix_id: MatrixId, priority: int, created_at: datetime
    ) -> None:
        """For one matrix."""
        self.matrix_id = matrix_id
        self.priority = priority
        self.created_at = created_at
        self._rounds = job_template.rounds
        self._by_device = {part.device_id: DeviceExpansion(job_template, part) for part in job_template.parts}

    def chunk(self, pieces: Sequence[ExpansionBatch]) -> RowBatch:
        """The rows of some pieces."""
        cells: list[NewCell] = []
        rows: list[tuple[int, DeviceId, int, int]] = []
        for piece in pieces:
            unfolding = self._by_device[piece.device_id]
            own = list(unfolding.jobs(piece.start, piece.stop))
            cells += _new_cells(unfolding, (job.index for job in own if job.round == 1))
            for job in own:
                virtual_time = round_virtual_time(
                    piece.first_virtual_time, round=job.round, cells=unfolding.cell_count
                )
                rows.append((job.index, piece.device_id, job.round, virtual_time))
        return RowBatch(pieces=pieces, cells=sorted(cells), jobs=rows)

    def whole(self, first_virtual_times: Mapping[DeviceId, int]) -> RowBatch:
        """All rows of a small matrix."""
        pieces = [
            ExpansionBatch(
                device_id=device_id,
                start=0,
                stop=unfolding.job_count,
                first_virtual_time=first_virtual_times[device_id],
                is_last=True,
            )
            for device_id, unfolding in self._by_device.items()
        ]
        return self.chunk(pieces)

    def jobs_of_rounds(self, device_id: DeviceId, rounds: int) -> int:
        """How many jobs a device has in its first rounds."""
        return self._by_device[device_id].cell_count * rounds


def _new_cells(unfolding: DeviceExpansion, indexes: Iterable[int]) -> Iterable[NewCell]:
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


def open_row_builder(connection: Connection, matrix_id: MatrixId) -> RowBuilder | None:
    """What makes the rows of a matrix; None when all of them are made, or will not be."""
    if all(left.is_cancelled for left in lazy_expansion.remaining_jobs(connection, matrix_id)):
        return None
    job_template, priority = lazy_expansion.get_job_template(connection, matrix_id)
    created_at = matrices.get_matrix(connection, matrix_id).created_at
    return RowBuilder(job_template, matrix_id=matrix_id, priority=priority, created_at=created_at)


def put_row_batch(connection: Connection, maker: RowBuilder, chunk: RowBatch, *, now: datetime) -> bool:
    """Move the cursors and store what they count; nothing, and False, where one has moved on."""
    with connection.begin_nested() as savepoint:
        if not lazy_expansion.move_cursors(connection, maker.matrix_id, chunk.pieces):
            savepoint.rollback()
            return False
    idle = device_workload.idle_devices(connection, [piece.device_id for piece in chunk.pieces])
    notify_hosts_of_devices(connection, idle)
    put_rows(connection, maker, chunk)
    lazy_expansion.drop_job_template_if_done(connection, maker.matrix_id)
    _end_poison_jobs(connection, maker.matrix_id, now=now)
    return True


def put_rows(connection: Connection, maker: RowBuilder, chunk: RowBatch) -> None:
    """Store cells and queue their jobs."""
    matrices.add_cells(connection, maker.matrix_id, chunk.cells)
    indexes = [row[0] for row in chunk.jobs]
    id_by_index = matrices.cell_ids(connection, maker.matrix_id, indexes)
    new_jobs = [
        NewJob(device_id, id_by_index[index], round, virtual_time)
        for index, device_id, round, virtual_time in chunk.jobs
    ]
    jobs.add_jobs(connection, maker.matrix_id, new_jobs, priority=maker.priority, now=maker.created_at)


def expand_rounds(
    connection: Connection, matrix_id: MatrixId, device_id: DeviceId, *, rounds: int, now: datetime
) -> None:
    """See to it that a device has its first rounds whole, at once: one of them is to be repeated."""
    if (maker := open_row_builder(connection, matrix_id)) is None:
        return
    stop = maker.jobs_of_rounds(device_id, rounds)
    if (piece := lazy_expansion.batch_up_to(connection, matrix_id, device_id, stop)) is not None:
        put_row_batch(connection, maker, maker.chunk([piece]), now=now)


def _end_poison_jobs(connection: Connection, matrix_id: MatrixId, *, now: datetime) -> None:
    """End what was queued of work that is known to make phones go away, before it reaches the next."""
    cells = equivalent_cells.poison_cells(connection, matrix_id)
    queued = equivalent_cells.queued_jobs_of_cells(connection, matrix_id, sorted(cells)) if cells else []
    job_by_id = jobs.find_jobs(connection, queued) if queued else {}
    for job_id in queued:
        job = job_by_id[job_id]
        assert job.cell_id is not None
        if killed := poisoned_devices(equivalent_cells.losses_of_cell(connection, matrix_id, job.cell_id)):
            write(connection, [EndJob(at=now, job=job, outcome=poison_outcome(killed), actor="farm")])
