"""Describe the progress of a matrix, and the outcome of each of its cells."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.runs.measurement import CellState
from farm.database.transaction import Tx
from farm.services.matrices.cell_views import CellLine, cell_lines, cell_views, lines_of_cells
from farm.services.matrices.progress import (
    ENDED,
    Eta,
    RunningWork,
    device_progress,
    etas,
    further_of_growing,
    matrix_state,
    matrix_work,
    outlook_of,
)
from farm.store.devices.devices import device_labels
from farm.store.jobs import counts as job_counts
from farm.store.jobs import jobs as job_store
from farm.store.jobs.counted_matrices import CountedMatrices
from farm.store.jobs.counts import Tally
from farm.store.matrices import lazy_expansion, matrices
from farm.store.matrices.candidates import page_of_devices
from farm.store.matrices.cell_states import cells_in_state
from farm.store.matrices.lazy_expansion import RemainingJobs
from farm.store.matrices.matrices import Matrix, get_matrix, page_of_rejections
from farm.store.matrices.search import MatrixFilter, list_matrices
from farm.wire.documents.matrices.jobs import JobView
from farm.wire.documents.matrices.matrices import (
    MAX_MATRICES_PAGE,
    CellView,
    MatrixSummary,
    MatrixView,
    Rejection,
)

#: The most cells that one page shows, and the most jobs of those.
_PAGE_CELLS, _PAGE_JOBS = 2000, 50_000
#: The cells whose states one call inspects.
_INSPECTED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixLine:
    """A matrix as a line of a list on a page."""

    matrix_id: MatrixId
    name: str
    state: str
    created_at: datetime
    jobs: int
    jobs_by_outcome: Mapping[str, int]


def list_matrix_lines(
    connection: Connection,
    counted: CountedMatrices,
    *,
    before: MatrixId | None = None,
    limit: int,
    which: MatrixFilter | None = None,
) -> list[MatrixLine]:
    """Return a page of matrices as lines, newest first; those before one, if it is given."""
    page = list_matrices(connection, before=before, limit=limit, which=which)
    work = matrix_work(connection, page, counted)
    return [
        MatrixLine(
            matrix_id=matrix.matrix_id,
            name=matrix.name,
            state=work.state(matrix.matrix_id),
            created_at=matrix.created_at,
            jobs=work.tally(matrix.matrix_id).total,
            jobs_by_outcome=work.tally(matrix.matrix_id).jobs_by_outcome,
        )
        for matrix in page
    ]


def list_matrix_summaries(
    tx: Tx,
    *,
    before: MatrixId | None = None,
    limit: int = MAX_MATRICES_PAGE,
    which: MatrixFilter | None = None,
    counted: CountedMatrices | None = None,
) -> list[MatrixSummary]:
    """Return a page of matrices, newest first; those before one, if it is given."""
    page = list_matrices(tx.connection, before=before, limit=limit, which=which)
    work = matrix_work(tx.connection, page, counted or CountedMatrices())
    remaining = etas(tx, work)
    without = {device_id for eta in remaining.values() for device_id in eta.without}
    labels = device_labels(tx.connection, without)
    return [
        _summary(
            matrix,
            work.tally(matrix.matrix_id),
            remaining.get(matrix.matrix_id, Eta()),
            work.not_queued.get(matrix.matrix_id, ()),
            labels,
            is_growing=matrix.matrix_id in work.further,
        )
        for matrix in page
    ]


def matrix_view(
    tx: Tx,
    matrix_id: MatrixId,
    *,
    cells: int | None = None,
    counted: CountedMatrices | None = None,
    devices: tuple[DeviceId, int] | None = None,
) -> MatrixView:
    """Return a matrix with its progress and its first cells. Raises like `get_matrix`.

    Args:
        tx: the transaction.
        matrix_id: its number.
        cells: so many of its first cells at most.
        counted: what this process has counted.
        devices: the progress on the devices behind an id only, so many at most, and at least one. That of
            the others is not computed for a finished matrix; of one that runs, each device tells how long it
            will take.
    """
    connection = tx.connection
    matrix = get_matrix(connection, matrix_id)
    counted = counted or CountedMatrices()
    ended = counted.finished.find(connection, [matrix_id]).get(matrix_id)
    not_queued = lazy_expansion.remaining_jobs(connection, matrix_id)
    further = further_of_growing(connection, [matrix]).get(matrix_id, {})
    after, limit = devices or (DeviceId(""), None)
    if ended is None or not_queued or further:
        running = counted.running.find(connection, [matrix_id])[matrix_id]
        repeated_blocks = len(running.repeats)
        work = RunningWork(counted=running, not_queued=not_queued, further=further)
        tally, outlook = work.tally(), outlook_of(tx, work)
        shown = work.tallies(after=after, limit=limit)
    else:
        counted.running.forget([matrix_id])
        page = page_of_devices(connection, matrix_id, after=after, limit=limit) if limit else None
        own_tallies = job_counts.tally_by_device(connection, matrix_id, page)
        # In the order of the database, by which the next page begins: its locale may have another one.
        shown = {
            device_id: own_tallies[device_id]
            for device_id in page or sorted(own_tallies)
            if device_id in own_tallies
        }
        tally, repeated_blocks, outlook = ended.tally, ended.repeated_blocks, ENDED
    eta = outlook.eta()
    labels = device_labels(connection, {*shown, *eta.without})
    progress = device_progress(connection, matrix_id, shown, outlook, labels, further=further)
    summary = _summary(matrix, tally, eta, not_queued, labels, is_growing=bool(further))
    return MatrixView(
        **dict(summary),
        harness=matrix.harness,
        repeated_blocks=repeated_blocks,
        metrics=matrix.spec.metrics,
        sustained_s=matrix.spec.sustained,
        progress=progress,
        cell_list=cell_views(connection, matrix, after=-1, limit=_page_size(matrix, cells)),
        rejected_list=page_of_rejections(connection, matrix_id, after=-1),
    )


def first_page_size(matrix: Matrix) -> int:
    """Return the number of cells of a page: its cost grows with their jobs."""
    return min(_PAGE_CELLS, _PAGE_JOBS // (matrix.max_rounds or matrix.rounds))


def list_cell_views(
    connection: Connection, matrix_id: MatrixId, *, after: int, limit: int | None = None
) -> tuple[CellView, ...]:
    """Return a page of the cells of a matrix behind an index; empty at the end. Raises like `get_matrix`."""
    matrix = get_matrix(connection, matrix_id)
    return cell_views(connection, matrix, after=after, limit=_page_size(matrix, limit))


def list_cell_lines(
    connection: Connection, matrix_id: MatrixId, *, after: int, limit: int | None = None
) -> tuple[CellLine, ...]:
    """Return the same cells as lines, without what they run. Raises like `get_matrix`."""
    matrix = get_matrix(connection, matrix_id)
    return cell_lines(connection, matrix, after=after, limit=_page_size(matrix, limit))


def _page_size(matrix: Matrix, limit: int | None) -> int:
    """Return how many cells of a matrix are read at once where `limit` are asked for."""
    return first_page_size(matrix) if limit is None else min(limit, first_page_size(matrix))


def list_cell_lines_in_state(
    connection: Connection,
    matrix_id: MatrixId,
    states: Collection[CellState],
    *,
    after: int,
    limit: int,
) -> tuple[tuple[CellLine, ...], int | None]:
    """Return cells of a matrix in these states behind an index, and the index behind which there may be more.

    A call inspects only a part of a large matrix, so that it does not take long: there may be no cell in
    these states in that part. Raises like `get_matrix`.
    """
    get_matrix(connection, matrix_id)
    until = after + _INSPECTED
    found = cells_in_state(connection, matrix_id, states, after=after, until=until, limit=limit)
    lines = lines_of_cells(connection, found)
    if len(found) == limit:
        return lines, found[-1].index
    return lines, until if matrices.placed_cells(connection, matrix_id, after=until, limit=1) else None


def list_rejected_views(connection: Connection, matrix_id: MatrixId, *, after: int) -> tuple[Rejection, ...]:
    """Return a page of the cells of a matrix that get no jobs, behind a place; empty at the end.

    Raises like `get_matrix`.
    """
    get_matrix(connection, matrix_id)
    return page_of_rejections(connection, matrix_id, after=after)


def list_job_views(
    connection: Connection, matrix_id: MatrixId, *, after: int = 0, limit: int | None = None
) -> list[JobView]:
    """Return jobs of a matrix in the order they were queued: at most `limit` of those after one.

    Raises like `get_matrix`.
    """
    get_matrix(connection, matrix_id)
    page = job_store.list_jobs(connection, matrix_id, after=after, limit=limit)
    labels = matrices.labels_by_cell(connection, {job.cell_id for job in page if job.cell_id is not None})
    label_by_device = device_labels(connection, {job.device_id for job in page})
    attempts_by_job = job_counts.attempt_ids_by_job(connection, [job.job_id for job in page])
    return [
        JobView.of(
            job,
            device_label=label_by_device.get(job.device_id),
            label=labels[job.cell_id] if job.cell_id else "",
            attempts=attempts_by_job.get(job.job_id, ()),
        )
        for job in page
    ]


def _summary(
    matrix: Matrix,
    tally: Tally,
    eta: Eta,
    not_queued: Sequence[RemainingJobs],
    labels: Mapping[DeviceId, str],
    *,
    is_growing: bool,
) -> MatrixSummary:
    is_open = tally.is_open or is_growing
    return MatrixSummary.of(
        matrix,
        tally,
        state=matrix_state(tally, is_open=is_open),
        max_rounds=matrix.max_rounds or matrix.rounds,
        cells=matrix.cell_count,
        rejected=matrix.rejected_count,
        jobs=tally.total,
        not_queued=sum(left.count for left in not_queued if not left.is_cancelled),
        finished_at=None if is_open else tally.last_finished_at or matrix.created_at,
        submitted_by=None if matrix.submitted_by is None else matrix.submitted_by.removeprefix("user:"),
        eta_s=eta.seconds,
        max_eta_s=eta.max_seconds,
        without_eta=eta.without,
        without_eta_names=tuple(labels.get(device_id, device_id) for device_id in eta.without),
    )
