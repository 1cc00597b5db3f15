"""Jobs with their attempts and numbers, and everything that one number rests on, try by try."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, JobId
from farm.core.errors import NotFound
from farm.core.jobs.job import Job
from farm.core.results.pairing import block_key
from farm.core.runs.measurement import COUNTED
from farm.phone.condition.run_trace import run_trace
from farm.services.results.explanations.peak import reached_peak
from farm.services.results.explanations.sides import (
    compared_cells,
    evidence_of,
    explain_device,
    explain_sides,
    positions_in_blocks,
)
from farm.store.devices import devices
from farm.store.jobs import attempts, jobs
from farm.store.jobs.run_order import orders_of
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.results import provenance
from farm.store.results.provenance import MeasuredRun
from farm.wire.documents.results.explain import (
    AttemptSummary,
    JobDetail,
    JobExplanation,
    MeasurementView,
)


def job_detail(connection: Connection, job_id: JobId) -> JobDetail:
    """Return a job with its attempts and its number.

    Raises:
        NotFound: there is no such job.
    """
    [detail] = _details(connection, [_get_job(connection, job_id)])
    return detail


def cell_jobs(connection: Connection, cell_id: CellId, *, after: int = 0, limit: int) -> list[JobDetail]:
    """Return up to `limit` jobs of a cell behind one, in the order of queueing, with attempts and numbers."""
    return _details(connection, jobs.jobs_of_cell(connection, cell_id, after=after, limit=limit))


def _details(connection: Connection, own: Sequence[Job]) -> list[JobDetail]:
    """Return jobs of one cell, or one job, with their attempts and numbers."""
    if not own:
        return []
    first, job_ids = own[0], [job.job_id for job in own]
    cell = None if first.cell_id is None else matrices.get_cell(connection, first.cell_id)
    matrix = None if first.matrix_id is None else matrices.get_matrix(connection, first.matrix_id)
    device_label = devices.get_device(connection, first.device_id).label
    tried = attempts.attempts_of_jobs(connection, job_ids)
    runs = provenance.runs_of_jobs(connection, job_ids)
    orders = orders_of(connection, [run.attempt_id for run in runs.values()])
    return [
        JobDetail.of(
            job,
            device_label=device_label,
            label="health check" if cell is None else cell.label,
            attempts=tuple(attempt.attempt_id for attempt in tried.get(job.job_id, ())),
            matrix=None if matrix is None else matrix.name,
            attempt_list=tuple(AttemptSummary.of(attempt) for attempt in tried.get(job.job_id, ())),
            run=None
            if (run := runs.get(job.job_id)) is None
            else MeasurementView.of(run, order=orders.get(run.attempt_id)),
        )
        for job in own
    ]


def explain_job(connection: Connection, job_id: JobId) -> JobExplanation:
    """Explain a benchmark's number by all that it rests on.

    Raises:
        NotFound: there is no such job, or it is a health check, which has no number.
    """
    detail = job_detail(connection, job_id)
    job = _get_job(connection, job_id)
    if job.cell_id is None or job.matrix_id is None:
        hint = f"`farm job show {job_id}` shows how it went"
        raise NotFound(f"job {job_id} is a health check: it has no number", hint=hint)
    cell = matrices.get_cell(connection, job.cell_id)
    matrix = matrices.get_matrix(connection, job.matrix_id)
    run = provenance.runs_of_jobs(connection, [job_id]).get(job_id)
    runs = [] if run is None else [run]
    orders = orders_of(connection, [run.attempt_id for run in runs])
    evidence = next(iter(evidence_of(connection, [run.attempt_id for run in runs]).values()), None)
    place, size = positions_in_blocks(connection, cell).get(job_id, (None, None))
    left_out = _left_out_reason(connection, matrix, cell, run)
    device = explain_device(connection, cell, runs)
    [side] = explain_sides(connection, [(cell, runs)], orders)
    return JobExplanation.of(
        matrix.spec,
        job=detail,
        device=device,
        side=side,
        peak=None
        if run is None
        else reached_peak(
            run,
            harness=side.program.harness,
            settings=cell.settings,
            manifest=side.manifest,
            facts=device.builds[0].facts if device.builds else None,
            evidence=evidence,
        ),
        before=evidence.before if evidence else None,
        after=evidence.after if evidence else None,
        argv=evidence.argv if evidence else (),
        pushed_bytes=evidence.pushed_bytes if evidence else None,
        waited_s=evidence.waited_s if evidence else None,
        trace=run_trace(evidence.trace) if evidence else None,
        place=place,
        block_size=size,
        use=_use(connection, cell, run, left_out),
        left_out=left_out is not None,
        cells=_comparisons(connection, cell),
    )


def _get_job(connection: Connection, job_id: JobId) -> Job:
    job = jobs.find_job(connection, job_id)
    if job is None:
        raise NotFound(f"there is no job {job_id}", hint="`farm matrix jobs ID` lists a matrix's jobs")
    return job


def _comparisons(connection: Connection, cell: CellRow) -> tuple[CellId, ...]:
    """Return the cells whose speedups can use the job's number."""
    if cell.baseline_index is not None:
        return (cell.cell_id,)
    cells = matrices.list_cells(connection, cell.matrix_id, device_id=cell.device_id)
    return tuple(other.cell_id for other in cells if other.baseline_index == cell.index)


def _use(connection: Connection, cell: CellRow, run: MeasuredRun | None, left_out: str | None) -> str | None:
    """Describe the use of the number in the comparison of its own cell."""
    if run is None:
        return None
    if cell.baseline_index is None:
        if not _comparisons(connection, cell):
            return "in no comparison: the matrix compares nothing to it"
        is_valid = run.quality in COUNTED
        return "as a baseline's, in the rounds of those that are compared to it" if is_valid else None
    return "it counts, as one round" if left_out is None else f"left out: {left_out}"


def _left_out_reason(
    connection: Connection, matrix: Matrix, cell: CellRow, run: MeasuredRun | None
) -> str | None:
    """Return why the number is left out of the comparison of its own cell; None where it is not."""
    if run is None or cell.baseline_index is None:
        return None
    inputs = compared_cells(connection, matrix, {cell.cell_id: cell})[cell.cell_id]
    excluded = inputs.means().excluded
    return next((pair.reason for pair in excluded if block_key(pair) == block_key(run)), None)
