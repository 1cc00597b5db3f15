"""Expansion: jobs of large matrices are queued in batches, each in a short transaction of its own.

A million rows in one transaction would keep every agent waiting. A submission is answered once the job
template is stored; any farm process queues the remaining jobs, from where the cursors stand. A cursor moves
by compare-and-set with the rows that it counts: a process that is killed leaves no half batch behind, and of
two at work one finds nothing to do. A batch ends where a block does, so that any block can be repeated.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, IdempotencyKey, MatrixId
from farm.core.errors import LimitReached
from farm.core.jobs.fair_share import round_virtual_time
from farm.core.jobs.retry import poisoned_devices
from farm.core.matrices.blocks import PlannedStart
from farm.core.matrices.job_template import DeviceExpansion, JobTemplate
from farm.core.results.settle.consequences import poison_outcome
from farm.core.results.settle.effects import EndJob
from farm.database.notifications import notify_hosts_of_devices
from farm.database.transaction import Tx
from farm.services.matrices.submit import PreparedMatrix, store_if_unchanged
from farm.store.devices import workload as device_workload
from farm.store.jobs import jobs
from farm.store.jobs.jobs import NewJob
from farm.store.matrices import equivalent_cells, lazy_expansion, matrices
from farm.store.matrices.lazy_expansion import ExpansionBatch
from farm.store.matrices.matrices import NewCell
from farm.store.results.settle.effects import write

#: When a person with too many unfinished jobs may ask again: runs take minutes.
_WAIT_FOR_JOBS_S = 300.0
#: A matrix of no more jobs is queued in the transaction of its submission.
INLINE_JOBS = 2000
#: Jobs that one transaction queues, which bounds the time that an agent has to wait.
CHUNK_JOBS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """The rows of batches of several devices, with the cells that these are the first to need."""

    #: To the ends of blocks.
    batches: Sequence[ExpansionBatch]
    cells: Sequence[NewCell]
    #: Device, start and virtual time of each job, by device in the order it runs them.
    jobs: Sequence[tuple[DeviceId, PlannedStart, int]]


class RowBuilder:
    """Builds the rows of a matrix from its job template; keeps what it planned of each device."""

    def __init__(
        self, job_template: JobTemplate, *, matrix_id: MatrixId, priority: int, created_at: datetime
    ) -> None:
        """Prepare to build the rows of one matrix."""
        self.matrix_id = matrix_id
        self.priority = priority
        self.created_at = created_at
        self._template = job_template
        self._by_device: dict[DeviceId, DeviceExpansion] = {}

    def build(self, batches: Sequence[ExpansionBatch]) -> RowBatch:
        """Build the rows of some batches, each to the end of the block that it ends in."""
        whole, cells = list[ExpansionBatch](), list[NewCell]()
        rows = list[tuple[DeviceId, PlannedStart, int]]()
        for batch in batches:
            expansion = self._expansion(batch.device_id)
            own = expansion.jobs(batch.start, batch.stop)
            stop = batch.start + len(own)
            whole.append(replace(batch, stop=stop, is_last=stop == expansion.job_count))
            cells += _new_cells(expansion, (job.cell_index for job in own if job.round == 1))
            for job in own:
                virtual_time = round_virtual_time(
                    batch.first_virtual_time,
                    round_number=job.round,
                    jobs_per_round=expansion.start_count_per_round,
                )
                rows.append((batch.device_id, job, virtual_time))
        return RowBatch(batches=whole, cells=sorted(cells), jobs=rows)

    def _expansion(self, device_id: DeviceId) -> DeviceExpansion:
        if device_id not in self._by_device:
            part = next(part for part in self._template.parts if part.device_id == device_id)
            self._by_device[device_id] = DeviceExpansion(self._template, part)
        return self._by_device[device_id]


def _new_cells(expansion: DeviceExpansion, indexes: Iterable[int]) -> Iterable[NewCell]:
    return (
        NewCell(
            cell_index=placed.index,
            device_id=expansion.part.device_id,
            variant_id=placed.slot.variant_id,
            program_id=expansion.part.program_of(placed.slot),
            backend=placed.slot.backend,
            settings=expansion.settings(placed.slot),
            replica=placed.slot.replica,
            label=placed.slot.label,
            baseline_index=placed.baseline_index,
        )
        for placed in expansion.cells(indexes)
    )


def open_row_builder(connection: Connection, matrix_id: MatrixId) -> RowBuilder | None:
    """Return the builder of a matrix's rows; None when all of them are stored, or never will be."""
    if all(remaining.is_cancelled for remaining in lazy_expansion.remaining_jobs(connection, matrix_id)):
        return None
    job_template, priority = lazy_expansion.get_job_template(connection, matrix_id)
    created_at = matrices.get_matrix(connection, matrix_id).created_at
    return RowBuilder(job_template, matrix_id=matrix_id, priority=priority, created_at=created_at)


def put_row_batch(tx: Tx, builder: RowBuilder, rows: RowBatch) -> bool:
    """Move the cursors and store what they count; nothing, and False, where one has moved on."""
    with tx.connection.begin_nested() as savepoint:
        if not lazy_expansion.move_cursors(tx.connection, builder.matrix_id, rows.batches):
            savepoint.rollback()
            return False
    idle = device_workload.idle_devices(tx.connection, [batch.device_id for batch in rows.batches])
    notify_hosts_of_devices(tx.connection, idle)
    _put_rows(tx.connection, builder, rows)
    lazy_expansion.drop_job_template_if_done(tx.connection, builder.matrix_id)
    end_poison_jobs(tx, builder.matrix_id)
    return True


def _put_rows(connection: Connection, builder: RowBuilder, rows: RowBatch) -> None:
    """Store cells and queue their jobs."""
    matrices.add_cells(connection, builder.matrix_id, rows.cells)
    id_by_index = matrices.cell_ids(
        connection, builder.matrix_id, {start.cell_index for _, start, _ in rows.jobs}
    )
    new_jobs = [
        NewJob(device_id, id_by_index[start.cell_index], start.round, start.block, start.place, virtual_time)
        for device_id, start, virtual_time in rows.jobs
    ]
    jobs.add_jobs(Tx(connection, builder.created_at), builder.matrix_id, new_jobs, priority=builder.priority)


def store_and_expand(
    tx: Tx,
    prepared: PreparedMatrix,
    *,
    rerun_of: MatrixId | None = None,
    idempotency: IdempotencyKey | None = None,
    most_open_jobs: int | None = None,
) -> MatrixId | None:
    """Store a prepared matrix, and queue its jobs where they are few; like `store_if_unchanged`.

    Raises:
        LimitReached: with it, the actor has more unfinished jobs than `most_open_jobs`; nothing is stored.
    """
    matrix_id = store_if_unchanged(tx, prepared, rerun_of=rerun_of, idempotency=idempotency)
    if matrix_id is None:
        return None
    if most_open_jobs is not None:
        _check_quota(tx, prepared.job_template.job_count, most_open_jobs)
    expand_small(tx, matrix_id)
    return matrix_id


def _check_quota(tx: Tx, new_jobs: int, most_open_jobs: int) -> None:
    # With the new ones, which are rolled back: of two submissions at once, the second sees the first.
    open_jobs = jobs.count_open_jobs(tx.connection, tx.actor)
    if open_jobs > most_open_jobs:
        refusal = LimitReached(
            f"{new_jobs:,} jobs more are too many: you have {open_jobs - new_jobs:,} unfinished ones, and may"
            f" have {most_open_jobs:,}",
            hint="wait, or cancel a matrix (`farm matrix list --mine`); an operator sets the limit,"
            " FARM_OPEN_JOBS_PER_PERSON",
        )
        refusal.wait_s = _WAIT_FOR_JOBS_S
        raise refusal


def expand_small(tx: Tx, matrix_id: MatrixId, *, jobs: int = INLINE_JOBS) -> None:
    """Queue all jobs of a matrix at once where they are few."""
    left = [row.count for row in lazy_expansion.remaining_jobs(tx.connection, matrix_id)]
    if sum(left) > jobs or (builder := open_row_builder(tx.connection, matrix_id)) is None:
        return
    while batches := lazy_expansion.next_batches(tx.connection, matrix_id, jobs=CHUNK_JOBS):
        put_row_batch(tx, builder, builder.build(batches))


def end_poison_jobs(tx: Tx, matrix_id: MatrixId) -> None:
    """End the queued jobs that are known to make devices go away, before they reach another device."""
    cells = equivalent_cells.poison_cells(tx.connection, matrix_id)
    queued = equivalent_cells.queued_jobs_of_cells(tx.connection, matrix_id, sorted(cells)) if cells else []
    for job in queued:
        assert job.cell_id is not None
        if devices := poisoned_devices(
            equivalent_cells.losses_of_cell(tx.connection, matrix_id, job.cell_id)
        ):
            write(tx.connection, [EndJob(at=tx.now, job=job, outcome=poison_outcome(devices), actor="farm")])
