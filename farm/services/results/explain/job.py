"""One job: how it went, try by try, and everything that its number rests on."""

from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, JobId
from farm.core.devices.condition import Gates
from farm.core.errors import NotFound
from farm.core.jobs.job import Job
from farm.core.runs.measurement import Quality
from farm.services.devices.software_updates import builds_of
from farm.services.matrices.views import job_view
from farm.services.results.explain.cell import positions_in_blocks, used_rounds
from farm.services.results.explain.side import evidence_of, explain_device, explain_side, run_view
from farm.store.jobs import attempts, jobs
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.results import provenance
from farm.store.results.provenance import MeasuredRun
from farm.wire.documents.results.explain import AttemptSummary, JobDetail, JobExplanation

_GATES = TypeAdapter(Gates)


def job_detail(connection: Connection, job_id: JobId) -> JobDetail:
    """A job with its attempts and its number.

    Raises:
        NotFound: there is no such job.
    """
    job = _get_job(connection, job_id)
    cell = None if job.cell_id is None else matrices.get_cell(connection, job.cell_id)
    matrix = None if job.matrix_id is None else matrices.get_matrix(connection, job.matrix_id)
    tried = attempts.attempts_of_job(connection, job_id)
    run = provenance.run_of_job(connection, job_id)
    label = "health check" if cell is None else cell.label
    view = job_view(job, label, tuple(attempt.attempt_id for attempt in tried))
    return JobDetail(
        **dict(view),
        matrix=None if matrix is None else matrix.name,
        cell_id=job.cell_id,
        created_at=job.created_at,
        finished_at=job.finished_at,
        attempt_list=tuple(
            AttemptSummary.model_validate(
                {name: getattr(attempt, name) for name in AttemptSummary.model_fields}
            )
            for attempt in tried
        ),
        run=None if run is None else run_view(run),
    )


def explain_job(connection: Connection, job_id: JobId) -> JobExplanation:
    """A benchmark's number with all that it rests on.

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
    run = provenance.run_of_job(connection, job_id)
    runs = [] if run is None else [run]
    evidence = next(iter(evidence_of(connection, [each.attempt_id for each in runs]).values()), None)
    place, size = positions_in_blocks(connection, cell).get(job_id, (None, None))
    return JobExplanation(
        job=detail,
        gates=_GATES.validate_python(matrix.spec["gates"]),
        noise_limit=matrix.spec["noise_limit"],
        device=explain_device(connection, cell, runs),
        side=explain_side(connection, cell, runs),
        before=evidence.before if evidence else None,
        after=evidence.after if evidence else None,
        argv=evidence.argv if evidence else (),
        pushed_bytes=evidence.pushed_bytes if evidence else None,
        waited_s=evidence.waited_s if evidence else None,
        place=place,
        block_size=size,
        use=_use(connection, matrix, cell, run),
        cells=_comparisons(connection, cell),
    )


def _get_job(connection: Connection, job_id: JobId) -> Job:
    job = jobs.find_job(connection, job_id)
    if job is None:
        raise NotFound(f"there is no job {job_id}", hint="`farm matrix jobs ID` lists a matrix's jobs")
    return job


def _comparisons(connection: Connection, cell: CellRow) -> tuple[CellId, ...]:
    """The cells whose speedups can use the job's number."""
    if cell.baseline_index is not None:
        return (cell.cell_id,)
    cells = matrices.list_cells(connection, cell.matrix_id, device_id=cell.device_id)
    return tuple(each.cell_id for each in cells if each.baseline_index == cell.index)


def _use(connection: Connection, matrix: Matrix, cell: CellRow, run: MeasuredRun | None) -> str | None:
    """What the comparison of its own cell makes of the number."""
    if run is None:
        return None
    if cell.baseline_index is None:
        if not _comparisons(connection, cell):
            return "in no comparison: the matrix compares nothing to it"
        return "as a baseline's, in the rounds of those that are compared to it" if _is_valid(run) else None
    cells = matrices.list_cells(connection, cell.matrix_id, device_id=cell.device_id)
    baseline = next(each for each in cells if each.index == cell.baseline_index)
    runs = provenance.runs_of_cells(connection, [baseline.cell_id, cell.cell_id])
    sides = [[each for each in runs if each.cell_id == side.cell_id] for side in (baseline, cell)]
    _, left_out = used_rounds(
        matrix, sides[0], sides[1], builds_of(connection, {each.facts_id for each in runs})
    )
    reasons = [each.reason for each in left_out if (each.round, each.repeat) == (run.round, run.repeat)]
    return f"left out: {reasons[0]}" if reasons else "it counts, as one round"


def _is_valid(run: MeasuredRun) -> bool:
    return run.quality is Quality.VALID
