"""Growth of matrices by further rounds: looks at what is measured, and queueing of what is missing.

This is done beside settling, in short transactions of their own, each of which moves the growth of one device
by compare-and-set with the looks or jobs that it stores: a process that is killed leaves nothing half done,
and of two at work one finds nothing to do.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, MatrixId
from farm.core.devices.device import Admin
from farm.core.errors import FarmBusy
from farm.core.jobs.fair_share import round_virtual_time
from farm.core.matrices.blocks import BlockPlan, start_count_by_cell
from farm.core.matrices.rounds import SequentialRounds, cells_of_further_rounds, cells_to_decide
from farm.core.operations.event import EventSubject, FurtherWorkEvent
from farm.core.results.looks.look import Compare, Look, missing_rounds, take_look, unusable_look
from farm.core.results.statistics.interval import CONFIDENCE
from farm.database.notifications import notify_hosts_of_devices
from farm.database.transaction import Tx
from farm.services.matrices.lazy_expansion import end_poison_jobs
from farm.services.results.speedups.inputs import SpeedupInputs
from farm.services.results.speedups.pairs import comparisons_of
from farm.store.devices.devices import get_device
from farm.store.devices.workload import idle_devices
from farm.store.jobs import jobs
from farm.store.jobs.jobs import NewJob
from farm.store.matrices import matrices, round_growth
from farm.store.matrices.equivalent_cells import poison_cells
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.matrices.round_growth import RoundGrowth
from farm.store.operations.events import record_event
from farm.store.results.history.stale_points import MeasuredSession, mark_sessions
from farm.store.results.looks import add_looks, looks_of_cells, stopped_cells

#: Jobs that one transaction queues, and cells that it looks at, which bounds the time that an agent waits.
CHUNK_JOBS = 1000
CHUNK_CELLS = 100


@dataclass(frozen=True, slots=True)
class DueGrowth:
    """A device of a matrix that grows, for which there is something to do."""

    matrix_id: MatrixId
    #: None: the matrix is new, and its devices are not listed yet.
    device_id: DeviceId | None


def find_next_growth(connection: Connection, *, excluded: Collection[DueGrowth] = ()) -> DueGrowth | None:
    """Return what `grow_next` is to do next; None while there is nothing to do."""
    failed_ids = [due.matrix_id for due in excluded if due.device_id is None]
    new_id = round_growth.find_new_matrix(connection, excluded=failed_ids)
    if new_id is not None:
        return DueGrowth(new_id, None)
    left_out = [(due.matrix_id, due.device_id) for due in excluded if due.device_id is not None]
    growth = round_growth.find_due(connection, excluded=left_out)
    return None if growth is None else DueGrowth(growth.matrix_id, growth.device_id)


def grow_next(
    tx: Tx, due: DueGrowth, *, jobs_at_once: int = CHUNK_JOBS, cells_at_once: int = CHUNK_CELLS
) -> None:
    """Do the next step for one device of a matrix that grows, if there is still something to do.

    A step queues some jobs of its further rounds, or, once all of its jobs are over, looks at some of its
    cells. Run twice it does no harm: what is done is not done again.
    """
    if due.device_id is None:
        round_growth.add_growths(tx.connection, due.matrix_id)
        return
    growth = round_growth.find_due(tx.connection, only=(due.matrix_id, due.device_id))
    if growth is None:
        return
    matrix = matrices.get_matrix(tx.connection, growth.matrix_id)
    if get_device(tx.connection, growth.device_id).admin is Admin.RETIRED:
        after = replace(growth, finished_at=tx.now)
    elif growth.queued_jobs < growth.jobs:
        after = _queue_jobs(tx, matrix, growth, limit=jobs_at_once)
    else:
        after = _look(tx, matrix, growth, limit=cells_at_once)
    if not round_growth.move_growth(tx.connection, growth, after):
        raise FarmBusy("another process moved the growth of this matrix")


def _look(tx: Tx, matrix: Matrix, growth: RoundGrowth, *, limit: int) -> RoundGrowth:
    """Look at the next undecided cells of a device; after the last of them, add rounds, or end the growth."""
    rounds = matrix.spec.rounds
    assert isinstance(rounds, SequentialRounds)
    cells = matrices.list_cells(tx.connection, matrix.matrix_id, device_id=growth.device_id)
    stopped = stopped_cells(tx.connection, matrix.matrix_id, growth.device_id)
    deciding = {cell.cell_id for cell in cells_to_decide(cells)}
    waiting = [
        cell
        for cell in cells
        if cell.index > growth.looked_index
        and cell.baseline_index is not None
        and cell.cell_id not in stopped
    ]
    page = waiting[:limit]
    past = looks_of_cells(tx.connection, [cell.cell_id for cell in page])
    poison = poison_cells(tx.connection, matrix.matrix_id)
    taken: list[tuple[CellId, Look]] = []
    missing = [] if growth.missing_rounds is None else [growth.missing_rounds]
    for inputs in comparisons_of(tx.connection, matrix, page, all_rounds=True):
        cell = inputs.candidate
        before, compare = past.get(cell.cell_id, ()), _comparison(inputs)
        look = take_look(rounds, before, compare, rounds=growth.last_round, family=matrix.cell_count)
        is_deciding = cell.cell_id in deciding
        if cell.cell_id in poison:
            look = unusable_look(before, rounds=growth.last_round)
        elif look is not None and not is_deciding:
            # A duplicate gets as many rounds as its baseline: it stops with it, or as that does.
            look = None if look.level is None else replace(look, stopped=None)
        if look is not None:
            taken.append((cell.cell_id, look))
        if is_deciding and (look is None or look.stopped is None):
            seen = before if look is None else (*before, look)
            usable = compare(CONFIDENCE).rounds if look is None else look.usable
            missing.append(missing_rounds(rounds, seen, usable))
    add_looks(tx, taken)
    if taken:
        # A look decides which rounds count.
        mark_sessions(tx, [MeasuredSession(matrix.matrix_id, growth.device_id)])
    fewest = min(missing, default=None)
    if len(waiting) > limit:
        return replace(growth, looked_index=page[-1].index, missing_rounds=fewest)
    stopped |= {cell_id for cell_id, look in taken if look.stopped}
    further = cells_of_further_rounds(cells, stopped)
    if fewest is None or not further or growth.last_round >= rounds.at_most:
        return replace(growth, finished_at=tx.now)
    return _add_rounds(tx, matrix, growth, further, last=min(rounds.at_most, growth.last_round + fewest))


def _comparison(inputs: SpeedupInputs) -> Compare:
    return partial(inputs.with_confidence, inputs.means())


def _add_rounds(
    tx: Tx, matrix: Matrix, growth: RoundGrowth, further: Sequence[CellRow], *, last: int
) -> RoundGrowth:
    """Return the growth with further rounds, whose jobs are queued by the next steps."""
    first = growth.last_round + 1
    rounds = f"round {first}" if last == first else f"rounds {first} to {last}"
    record_event(
        tx,
        FurtherWorkEvent.MATRIX_GREW,
        matrix.matrix_id,
        subject=EventSubject.MATRIX,
        to_state="queued",
        cause=f"{growth.device_id}: {rounds} of {len(further)} cells",
    )
    # At the head of the queue, not behind its submitter's later matrices: it is the older one.
    times = jobs.first_virtual_times(
        tx.connection, [growth.device_id], priority=matrix.spec.priority, submitted_by=None
    )
    starts = sum(start_count_by_cell(further, matrix.block_candidates).values())
    return replace(
        growth,
        first_round=first,
        last_round=last,
        jobs=starts * (last - growth.last_round),
        queued_jobs=0,
        virtual_time=times[growth.device_id],
        looked_index=-1,
        missing_rounds=None,
    )


def _queue_jobs(tx: Tx, matrix: Matrix, growth: RoundGrowth, *, limit: int) -> RoundGrowth:
    """Queue the next blocks of the further rounds, in the order that the seed determines."""
    cells = matrices.list_cells(tx.connection, matrix.matrix_id, device_id=growth.device_id)
    stopped = stopped_cells(tx.connection, matrix.matrix_id, growth.device_id)
    cell_by_index = {cell.index: cell for cell in cells_of_further_rounds(cells, stopped)}
    plan = BlockPlan(
        cell_by_index.values(),
        device_id=growth.device_id,
        seed=matrix.seed,
        max_candidates=matrix.block_candidates,
    )
    stop = min(growth.jobs, growth.queued_jobs + limit)
    new_jobs = [
        NewJob(
            growth.device_id,
            cell_by_index[start.cell_index].cell_id,
            start.round,
            start.block,
            start.place,
            round_virtual_time(
                growth.virtual_time,
                round_number=start.round - growth.first_round + 1,
                jobs_per_round=plan.start_count_per_round,
            ),
        )
        for start in plan.starts(growth.queued_jobs, stop, first_round=growth.first_round)
    ]
    notify_hosts_of_devices(tx.connection, idle_devices(tx.connection, [growth.device_id]))
    jobs.add_jobs(tx, matrix.matrix_id, new_jobs, priority=matrix.spec.priority)
    end_poison_jobs(tx, matrix.matrix_id)
    return replace(growth, queued_jobs=growth.queued_jobs + len(new_jobs))
