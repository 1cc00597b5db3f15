"""How far a matrix is, and what came of each of its cells."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, MatrixId
from farm.core.jobs.job import Job, JobState
from farm.core.runs.measurement import Outcome, Quality
from farm.services.matrices.progress import Eta, device_progress, eta_of, etas, work_by_device
from farm.store.jobs import counts as job_counts
from farm.store.jobs import pages as job_pages
from farm.store.jobs.counts import Tally
from farm.store.matrices import lazy_expansion, matrices, rejections
from farm.store.matrices.lazy_expansion import RemainingJobs
from farm.store.matrices.matrices import CellRow, Matrix, get_matrix
from farm.store.results import measurements
from farm.store.results.measurements import Measurement
from farm.wire.documents.matrices.matrices import (
    CellView,
    JobView,
    MatrixSummary,
    MatrixView,
    RejectedCellView,
)

#: Only what a person ended has neither message nor code.
_CANCELLED_BY_PERSON = "by a person"
#: Of cells that are shown together there are so many at most, with so many jobs.
_PAGE_CELLS, _PAGE_JOBS = 2000, 50_000


def list_matrix_summaries(connection: Connection, *, now: datetime) -> list[MatrixSummary]:
    """All matrices, newest first."""
    tallies = job_counts.tallies(connection)
    cells = matrices.cell_counts(connection)
    not_queued = lazy_expansion.remaining_jobs_by_matrix(connection)
    for matrix_id, left in not_queued.items():
        _add_not_queued(tallies.setdefault(matrix_id, Tally()), left)
    remaining = etas(
        connection,
        [matrix_id for matrix_id, tally in tallies.items() if tally.is_open],
        not_queued,
        now=now,
    )
    return [
        _summary(
            matrix,
            tallies.get(matrix.matrix_id, Tally()),
            _cell_count(
                connection, matrix, cells.get(matrix.matrix_id, 0), not_queued.get(matrix.matrix_id, ())
            ),
            remaining.get(matrix.matrix_id, Eta()),
            not_queued.get(matrix.matrix_id, ()),
        )
        for matrix in matrices.list_matrices(connection)
    ]


def matrix_view(connection: Connection, matrix_id: MatrixId, *, now: datetime) -> MatrixView:
    """A matrix with its progress and its first cells.

    Raises:
        NotFound: there is none.
    """
    matrix = get_matrix(connection, matrix_id)
    not_queued = lazy_expansion.remaining_jobs(connection, matrix_id)
    work = work_by_device(connection, matrix_id, not_queued)
    progress = device_progress(connection, matrix_id, work, now=now)
    tally = Tally()
    for own in work.values():
        tally.merge(own.tally)
    count = _cell_count(connection, matrix, matrices.count_cells(connection, matrix_id), not_queued)
    return MatrixView(
        **dict(_summary(matrix, tally, count, eta_of(progress), not_queued)),
        harness=matrix.harness,
        progress=progress,
        cell_list=_cell_page(connection, matrix, after=-1, limit=first_page_size(matrix)),
        rejected_list=_rejected_page(connection, matrix_id, after=-1),
    )


def first_page_size(matrix: Matrix) -> int:
    """How many cells a page has at most: what it costs goes by their jobs."""
    return min(_PAGE_CELLS, _PAGE_JOBS // matrix.rounds)


def list_cell_views(connection: Connection, matrix_id: MatrixId, *, after: int) -> tuple[CellView, ...]:
    """A page of the cells of a matrix by their indexes: those behind one, and none at the end.

    Raises:
        NotFound: there is no such matrix.
    """
    matrix = get_matrix(connection, matrix_id)
    return _cell_page(connection, matrix, after=after, limit=first_page_size(matrix))


def list_rejected_views(
    connection: Connection, matrix_id: MatrixId, *, after: int
) -> tuple[RejectedCellView, ...]:
    """A page of the cells of a matrix that get no jobs: those behind a place, and none at the end.

    Raises:
        NotFound: there is no such matrix.
    """
    get_matrix(connection, matrix_id)
    return _rejected_page(connection, matrix_id, after=after)


def list_job_views(
    connection: Connection, matrix_id: MatrixId, *, after: int = 0, limit: int | None = None
) -> list[JobView]:
    """Jobs of a matrix in the order they were queued: so many at most of those after one.

    Raises:
        NotFound: there is no such matrix.
    """
    get_matrix(connection, matrix_id)
    found = job_pages.list_jobs(connection, matrix_id, after=after, limit=limit)
    labels = matrices.labels_by_cell(connection, {job.cell_id for job in found if job.cell_id is not None})
    attempts_by_job = job_counts.attempt_ids_by_job(connection, [job.job_id for job in found])
    return [
        job_view(job, labels[job.cell_id] if job.cell_id else "", attempts_by_job.get(job.job_id, ()))
        for job in found
    ]


def _add_not_queued(tally: Tally, not_queued: Iterable[RemainingJobs]) -> None:
    for left in not_queued:
        tally.add(Outcome.CANCELLED if left.is_cancelled else JobState.QUEUED, left.count, None)


def _cell_count(
    connection: Connection, matrix: Matrix, stored: int, not_queued: Sequence[RemainingJobs]
) -> int:
    """All cells, those not stored yet among them."""
    if not not_queued:
        return stored
    behind = {left.device_id for left in not_queued}
    whole = sum(left.jobs for left in not_queued) // matrix.rounds
    return stored - matrices.count_cells(connection, matrix.matrix_id, behind) + whole


def _tally(own_jobs: Iterable[Job]) -> Tally:
    tally = Tally()
    for job in own_jobs:
        tally.add(job.outcome or job.state, 1, job.finished_at)
    return tally


def _summary(
    matrix: Matrix, tally: Tally, cells: int, eta: Eta, not_queued: Sequence[RemainingJobs]
) -> MatrixSummary:
    return MatrixSummary(
        matrix_id=matrix.matrix_id,
        name=matrix.name,
        state=_state(tally),
        rounds=matrix.rounds,
        cells=cells,
        rejected=matrix.rejected_count,
        jobs=tally.total,
        jobs_by_outcome=tally.jobs_by_outcome,
        not_queued=sum(left.count for left in not_queued if not left.is_cancelled),
        created_at=matrix.created_at,
        finished_at=None if tally.is_open else tally.last_finished_at or matrix.created_at,
        rerun_of=matrix.rerun_of,
        submitted_by=None if matrix.submitted_by is None else matrix.submitted_by.removeprefix("user:"),
        eta_s=eta.seconds,
        without_eta=eta.without,
    )


def _state(tally: Tally) -> str:
    if tally.is_open:
        return "running"
    return "cancelled" if tally.jobs_by_outcome.get(Outcome.CANCELLED) else "finished"


def _rejected_page(
    connection: Connection, matrix_id: MatrixId, *, after: int
) -> tuple[RejectedCellView, ...]:
    found = rejections.page_of_rejections(connection, matrix_id, after=after)
    return tuple(RejectedCellView.model_validate(each, from_attributes=True) for each in found)


def _cell_page(connection: Connection, matrix: Matrix, *, after: int, limit: int) -> tuple[CellView, ...]:
    cells = matrices.page_of_cells(connection, matrix.matrix_id, after=after, limit=limit)
    if not cells:
        return ()
    first, last = cells[0].index, cells[-1].index
    jobs_by_cell: defaultdict[CellId | None, list[Job]] = defaultdict(list)
    for job in job_pages.jobs_of_cells(connection, matrix.matrix_id, first, last):
        jobs_by_cell[job.cell_id].append(job)
    measured_by_cell: defaultdict[CellId, list[Measurement]] = defaultdict(list)
    for measurement in measurements.accepted_measurements(connection, matrix.matrix_id, of=(first, last)):
        measured_by_cell[measurement.cell_id].append(measurement)
    baselines = {cell.baseline_index for cell in cells if cell.baseline_index is not None}
    labels = matrices.labels_by_index(connection, matrix.matrix_id, baselines)
    return tuple(
        _cell_view(cell, jobs_by_cell[cell.cell_id], measured_by_cell[cell.cell_id], labels) for cell in cells
    )


def _cell_view(
    cell: CellRow, own: Sequence[Job], measured: Sequence[Measurement], label_by_index: Mapping[int, str]
) -> CellView:
    valid = [measurement.value_ns for measurement in measured if measurement.quality is Quality.VALID]
    problems = [
        f"{job.outcome}: {job.message or job.code or _CANCELLED_BY_PERSON}"
        for job in own
        if job.outcome not in (None, Outcome.SUCCEEDED)
    ]
    problems += [
        f"{measurement.quality}: {reason}"
        for measurement in measured
        for reason in measurement.quality_reasons
    ]
    return CellView(
        cell_id=cell.cell_id,
        index=cell.index,
        device_id=cell.device_id,
        label=cell.label,
        variant=cell.variant_name,
        backend=cell.backend,
        settings=dict(cell.settings),
        replica=cell.replica,
        baseline=None if cell.baseline_index is None else label_by_index[cell.baseline_index],
        jobs=len(own),
        jobs_by_outcome=_tally(own).jobs_by_outcome,
        measurements_by_quality=dict(Counter(str(measurement.quality) for measurement in measured)),
        value_ns=median(valid) if valid else None,
        problems=dict(Counter(problems)),
    )


def job_view(job: Job, label: str, tried: tuple[AttemptId, ...]) -> JobView:
    """A job in a listing."""
    return JobView(
        job_id=job.job_id,
        kind=job.kind,
        matrix_id=job.matrix_id,
        device_id=job.device_id,
        label=label,
        round=job.round,
        repeat=job.repeat,
        state=job.state,
        outcome=job.outcome,
        code=job.code,
        message=job.message,
        attempts=tried,
    )
