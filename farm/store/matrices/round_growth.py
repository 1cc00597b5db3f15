"""Growth of matrices by further rounds: a row for each device, until no cell there needs more."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.jobs.job import JobState
from farm.core.matrices.blocks import block_count
from farm.database.rows import to_record
from farm.database.tables import cells, jobs, lazy_expansions, literal, looks, matrices, round_growths
from farm.database.transaction import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundGrowth:
    """The rounds of a matrix that a device has now, and the look at them."""

    matrix_id: MatrixId
    device_id: DeviceId
    #: The rounds that were added together, and the number of their jobs; 0 for those of the submission.
    first_round: int
    last_round: int
    jobs: int
    #: Of these jobs, in the order in which the device runs them.
    queued_jobs: int
    #: Of the first of them.
    virtual_time: int
    #: Index of the last cell that was inspected after these rounds; -1 before.
    looked_index: int = -1
    #: The fewest rounds that a cell needs for its next look, of the cells inspected so far.
    missing_rounds: int | None = None
    finished_at: datetime | None = None


_COLUMNS = [field.name for field in fields(RoundGrowth)]
_OPEN = round_growths.c.finished_at.is_(None)
_HAS_UNFINISHED_JOBS = (
    sa.exists()
    .where(
        jobs.c.matrix_id == round_growths.c.matrix_id,
        jobs.c.device_id == round_growths.c.device_id,
        jobs.c.state.in_([literal(JobState.QUEUED), literal(JobState.ACTIVE)]),
    )
    .correlate(round_growths)
)
_IS_EXPANDING = (
    sa.exists()
    .where(
        lazy_expansions.c.matrix_id == round_growths.c.matrix_id,
        lazy_expansions.c.device_id == round_growths.c.device_id,
        lazy_expansions.c.cancelled_at.is_(None),
    )
    .correlate(round_growths)
)


def find_new_matrix(connection: Connection, *, excluded: Collection[MatrixId] = ()) -> MatrixId | None:
    """Return a matrix that grows and has no rows for it yet; None without any."""
    query = sa.select(matrices.c.matrix_id).where(
        matrices.c.max_rounds > matrices.c.rounds,
        ~sa.exists().where(round_growths.c.matrix_id == matrices.c.matrix_id).correlate(matrices),
    )
    found = connection.execute(query.order_by(matrices.c.matrix_id).limit(len(excluded) + 1)).scalars()
    return next((matrix_id for matrix_id in found if matrix_id not in excluded), None)


def add_growths(connection: Connection, matrix_id: MatrixId) -> None:
    """Add the missing rows of a matrix that grows: one for each of its devices."""
    of_cells = sa.select(cells.c.device_id).where(cells.c.matrix_id == matrix_id)
    of_rest = sa.select(lazy_expansions.c.device_id).where(lazy_expansions.c.matrix_id == matrix_id)
    present = sa.select(round_growths.c.device_id).where(round_growths.c.matrix_id == matrix_id)
    known = set(connection.execute(present).scalars())
    missing = {*connection.execute(of_cells.union(of_rest)).scalars()} - known
    rounds = sa.select(matrices.c.rounds).where(
        matrices.c.matrix_id == matrix_id, matrices.c.max_rounds > matrices.c.rounds
    )
    first_rounds = connection.execute(rounds).scalar()
    if first_rounds is None or not missing:
        return
    same = {"matrix_id": matrix_id, "first_round": 1, "last_round": first_rounds, "jobs": 0}
    start = {"queued_jobs": 0, "virtual_time": 0, "looked_index": -1}
    connection.execute(
        round_growths.insert(),
        [{**same, **start, "device_id": device_id} for device_id in sorted(missing)],
    )


def find_due(
    connection: Connection,
    *,
    only: tuple[MatrixId, DeviceId] | None = None,
    excluded: Collection[tuple[MatrixId, DeviceId]] = (),
) -> RoundGrowth | None:
    """Return a growth with something to do: jobs to queue, or a look at rounds that are over."""
    to_queue = round_growths.c.queued_jobs < round_growths.c.jobs
    is_over = sa.and_(~_HAS_UNFINISHED_JOBS, ~_IS_EXPANDING)
    query = (
        sa.select(*(round_growths.c[name] for name in _COLUMNS))
        .where(_OPEN, sa.or_(to_queue, is_over))
        .order_by(round_growths.c.matrix_id, round_growths.c.device_id)
        .limit(len(excluded) + 1)
    )
    if only is not None:
        matrix_id, device_id = only
        query = query.where(round_growths.c.matrix_id == matrix_id, round_growths.c.device_id == device_id)
    rows = (to_record(RoundGrowth, row) for row in connection.execute(query))
    return next((row for row in rows if (row.matrix_id, row.device_id) not in excluded), None)


def move_growth(connection: Connection, before: RoundGrowth, after: RoundGrowth) -> bool:
    """Store a growth by compare-and-set; False if another process moved it, or it was cancelled."""
    update = round_growths.update().where(
        round_growths.c.matrix_id == before.matrix_id,
        round_growths.c.device_id == before.device_id,
        round_growths.c.last_round == before.last_round,
        round_growths.c.queued_jobs == before.queued_jobs,
        round_growths.c.looked_index == before.looked_index,
        _OPEN,
    )
    values = {name: getattr(after, name) for name in _COLUMNS}
    return connection.execute(update.values(values)).rowcount == 1


def cancel_growth(tx: Tx, matrix_id: MatrixId, *, device_id: DeviceId | None = None) -> None:
    """End the growth of a matrix on one device or all: no further round is added."""
    add_growths(tx.connection, matrix_id)
    update = round_growths.update().where(_OPEN, round_growths.c.matrix_id == matrix_id)
    if device_id is not None:
        update = update.where(round_growths.c.device_id == device_id)
    tx.connection.execute(update.values(finished_at=tx.now))


def further_jobs(
    connection: Connection, matrix_ids: Collection[MatrixId]
) -> dict[MatrixId, dict[DeviceId, int]]:
    """Return by matrix and device the jobs that may still be added; devices that get none are missing.

    Matrices whose growth has ended, or that do not grow, are missing.
    """
    if not matrix_ids:
        return {}
    stopped = sa.exists().where(looks.c.cell_id == cells.c.cell_id, looks.c.stopped.is_not(None))
    rounds = matrices.c.max_rounds - sa.func.coalesce(round_growths.c.last_round, matrices.c.rounds)
    growth = sa.and_(
        round_growths.c.matrix_id == cells.c.matrix_id, round_growths.c.device_id == cells.c.device_id
    )
    unqueued = sa.func.coalesce(round_growths.c.jobs - round_growths.c.queued_jobs, 0)
    is_candidate = sa.and_(cells.c.baseline_index.is_not(None), cells.c.replica == 1)
    compared = (
        cells.c.matrix_id,
        cells.c.device_id,
        sa.func.coalesce(cells.c.baseline_index, cells.c.cell_index),
        matrices.c.block_candidates,
    )
    query = (
        sa.select(
            *compared[:2],
            matrices.c.block_candidates,
            sa.func.count().label("cells"),
            sa.func.sum(sa.case((is_candidate, 1), else_=0)).label("candidates"),
            sa.func.max(rounds).label("rounds"),
            sa.func.max(unqueued).label("unqueued"),
        )
        .select_from(cells)
        .join(matrices, matrices.c.matrix_id == cells.c.matrix_id)
        .outerjoin(round_growths, growth)
        .where(
            cells.c.matrix_id.in_(matrix_ids),
            matrices.c.max_rounds > matrices.c.rounds,
            round_growths.c.finished_at.is_(None),
            ~stopped.correlate(cells),
        )
        .group_by(*compared)
    )
    further: dict[MatrixId, dict[DeviceId, int]] = {}
    for row in connection.execute(query):
        own = further.setdefault(row.matrix_id, {})
        # A baseline, and its duplicate, start once more for each further block.
        blocks = block_count(row.candidates, row.block_candidates)
        starts = row.cells + (blocks - 1) * (row.cells - row.candidates)
        own[row.device_id] = own.get(row.device_id, row.unqueued) + starts * row.rounds
    return further
