"""How far a matrix is, and what came of each of its cells."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.errors import NotFound
from farm.core.ids import AttemptId, CellId, MatrixId
from farm.core.measurement import Outcome, Quality
from farm.services.devices import waiting_reasons
from farm.services.progress import Eta, device_progress, eta_of, etas
from farm.store import job_counts, jobs, matrices, measurements
from farm.store.job_counts import Tally
from farm.store.jobs import Job
from farm.store.matrices import CellRow, Matrix
from farm.store.measurements import Measurement
from farm.wire.views import CellView, JobView, MatrixSummary, MatrixView, RejectedView

#: Only what a person ended has neither message nor code.
_BY_A_PERSON = "by a person"


def get_matrix(connection: Connection, matrix_id: MatrixId) -> Matrix:
    """A matrix by its id.

    Raises:
        NotFound: there is none.
    """
    matrix = matrices.find_matrix(connection, matrix_id)
    if matrix is None:
        raise NotFound(f"there is no matrix {matrix_id}", hint="`farm matrix list` shows them all")
    return matrix


def list_matrix_summaries(connection: Connection, *, now: datetime) -> list[MatrixSummary]:
    """All matrices, newest first."""
    tallies = job_counts.tallies(connection)
    cells = matrices.cell_counts(connection)
    remaining = etas(
        connection, [matrix_id for matrix_id, tally in tallies.items() if tally.is_open], now=now
    )
    return [
        _summary(
            matrix,
            tallies.get(matrix.matrix_id, Tally()),
            cells.get(matrix.matrix_id, 0),
            remaining.get(matrix.matrix_id, Eta()),
        )
        for matrix in matrices.list_matrices(connection)
    ]


def matrix_view(connection: Connection, matrix_id: MatrixId, *, now: datetime) -> MatrixView:
    """A matrix with its progress and cells.

    Raises:
        NotFound: there is none.
    """
    matrix = get_matrix(connection, matrix_id)
    own_jobs = jobs.list_jobs(connection, matrix_id)
    cells = matrices.list_cells(connection, matrix_id)
    measured = measurements.accepted_measurements(connection, matrix_id)
    progress = device_progress(own_jobs, cells, waiting_reasons(connection), now=now)
    return MatrixView(
        **dict(_summary(matrix, _tally(own_jobs), len(cells), eta_of(progress))),
        harness=matrix.harness,
        progress=progress,
        cell_list=_cell_views(cells, own_jobs, measured),
        rejected_list=tuple(RejectedView.model_validate(rejected) for rejected in matrix.rejected),
    )


def list_job_views(connection: Connection, matrix_id: MatrixId) -> list[JobView]:
    """The jobs of a matrix in the order they were queued.

    Raises:
        NotFound: there is no such matrix.
    """
    get_matrix(connection, matrix_id)
    label_by_cell = {cell.cell_id: cell.label for cell in matrices.list_cells(connection, matrix_id)}
    attempts_by_job = job_counts.attempt_ids_of(connection, matrix_id)
    return [
        job_view(job, label_by_cell[job.cell_id] if job.cell_id else "", attempts_by_job.get(job.job_id, ()))
        for job in jobs.list_jobs(connection, matrix_id)
    ]


def _tally(own_jobs: Iterable[Job]) -> Tally:
    tally = Tally()
    for job in own_jobs:
        tally.add(job.outcome or job.state, 1, job.finished_at)
    return tally


def _summary(matrix: Matrix, tally: Tally, cells: int, eta: Eta) -> MatrixSummary:
    return MatrixSummary(
        matrix_id=matrix.matrix_id,
        name=matrix.name,
        state=_state(tally),
        rounds=matrix.rounds,
        cells=cells,
        rejected=len(matrix.rejected),
        jobs=sum(tally.jobs_by_outcome.values()),
        jobs_by_outcome=tally.jobs_by_outcome,
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


def _cell_views(
    cells: Sequence[CellRow], own_jobs: Sequence[Job], measured: Sequence[Measurement]
) -> tuple[CellView, ...]:
    jobs_by_cell: defaultdict[CellId | None, list[Job]] = defaultdict(list)
    for job in own_jobs:
        jobs_by_cell[job.cell_id].append(job)
    measured_by_cell: defaultdict[CellId, list[Measurement]] = defaultdict(list)
    for measurement in measured:
        measured_by_cell[measurement.cell_id].append(measurement)
    label_by_index = {cell.index: cell.label for cell in cells}
    return tuple(
        _cell_view(cell, jobs_by_cell[cell.cell_id], measured_by_cell[cell.cell_id], label_by_index)
        for cell in cells
    )


def _cell_view(
    cell: CellRow, own: Sequence[Job], measured: Sequence[Measurement], label_by_index: Mapping[int, str]
) -> CellView:
    valid = [measurement.value_ns for measurement in measured if measurement.quality is Quality.VALID]
    problems = [
        f"{job.outcome}: {job.message or job.code or _BY_A_PERSON}"
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
