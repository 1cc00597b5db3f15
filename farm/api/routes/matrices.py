"""Matrices and their jobs: planned, submitted, watched, cancelled, run again."""

from typing import Annotated

from fastapi import APIRouter, Header, Query

from farm.api.context import Farm
from farm.api.http.authorization import Submitter, Viewer
from farm.api.submission import submit
from farm.core.base.idempotency_key import idempotency_key
from farm.core.base.ids import CellId, JobId, MatrixId
from farm.services.jobs.pending_reasons import job_waiting, matrix_waiting
from farm.services.matrices.cancel import CancelProgress, cancel_chunk
from farm.services.matrices.idempotency import find_submitted_matrix
from farm.services.matrices.plan import plan_matrix
from farm.services.matrices.rerun import prepare_rerun
from farm.services.matrices.submit import prepare_matrix
from farm.services.matrices.views import (
    list_cell_views,
    list_job_views,
    list_matrix_summaries,
    list_rejected_views,
    matrix_view,
)
from farm.services.results.explain.cell import explain_cell
from farm.services.results.explain.job import explain_job, job_detail
from farm.wire.base import REQUEST_KEY_HEADER, Count
from farm.wire.documents.matrices.matrices import (
    MAX_JOBS_PAGE,
    CellView,
    JobView,
    MatrixSubmission,
    MatrixSummary,
    MatrixView,
    RejectedCellView,
)
from farm.wire.documents.matrices.matrix import matrix_spec
from farm.wire.documents.matrices.pending import JobPendingView, MatrixPendingView
from farm.wire.documents.matrices.plans import CancellationView, CancelRequest, MatrixPlanView, RerunRequest
from farm.wire.documents.results.explain import CellExplanation, JobDetail, JobExplanation

router = APIRouter(prefix="/api/v1")

#: A place before which nothing more is wanted; -1: from the first on.
After = Annotated[int, Query(ge=-1, lt=2**31)]
PageSize = Annotated[int, Query(ge=1, le=MAX_JOBS_PAGE)]


#: Chosen by whoever submits, for one submission: sent again under it, that makes no second matrix.
RequestKeyHeader = Annotated[str | None, Header(alias=REQUEST_KEY_HEADER)]


@router.post("/matrices", status_code=201)
async def post_matrix(
    submission: MatrixSubmission, caller: Submitter, farm: Farm, key: RequestKeyHeader = None
) -> MatrixView:
    """Submit a matrix; it is kept when this returns. The jobs of a large one are queued piece by piece.

    The same request under the same `Idempotency-Key` is answered with the matrix it made, another with 409.
    """
    request = idempotency_key(key, "matrices", submission.spec)
    matrix_id = await farm.database.read_async(find_submitted_matrix, request, actor=caller.actor)
    now = farm.clock.now()
    if matrix_id is None:
        spec = matrix_spec(submission.spec)
        matrix_id = await submit(farm, prepare_matrix, spec, request=request, actor=caller.actor)
    return await farm.database.read_async(matrix_view, matrix_id, now=now)


@router.post("/matrices/plan")
async def post_plan(submission: MatrixSubmission, _: Viewer, farm: Farm) -> MatrixPlanView:
    """What a matrix would come to; nothing is queued."""
    return await farm.database.read_async(plan_matrix, matrix_spec(submission.spec))


@router.get("/matrices")
async def get_matrices(_: Viewer, farm: Farm) -> list[MatrixSummary]:
    """Every matrix, newest first."""
    return await farm.database.read_async(list_matrix_summaries, now=farm.clock.now())


@router.get("/matrices/{matrix_id}")
async def get_matrix(matrix_id: Count, _: Viewer, farm: Farm) -> MatrixView:
    """A matrix with its progress and cells."""
    return await farm.database.read_async(matrix_view, MatrixId(matrix_id), now=farm.clock.now())


@router.post("/matrices/{matrix_id}/cancel")
async def post_cancel(
    matrix_id: Count, cancellation: CancelRequest, caller: Submitter, farm: Farm
) -> CancellationView:
    """End what is left of a matrix; again is no error. It is cancelled when this returns."""
    found: CancelProgress | None = None
    while found is None or not found.is_done:
        # Of a large matrix in several transactions: agents have their turn between them.
        found = await farm.database.change_async(
            cancel_chunk,
            MatrixId(matrix_id),
            device=cancellation.device,
            before=found,
            now=farm.clock.now(),
            actor=caller.actor,
        )
    return found.view


@router.post("/matrices/{matrix_id}/rerun", status_code=201)
async def post_rerun(
    matrix_id: Count, rerun: RerunRequest, caller: Submitter, farm: Farm, key: RequestKeyHeader = None
) -> MatrixView:
    """Submit the spec of a matrix again, over what the farm has now; `Idempotency-Key` as for a matrix."""
    whose, failed = MatrixId(matrix_id), rerun.failed
    request = idempotency_key(key, f"matrices/{matrix_id}/rerun", rerun.model_dump())
    again = await farm.database.read_async(find_submitted_matrix, request, actor=caller.actor)
    now = farm.clock.now()
    if again is None:
        again = await submit(
            farm, prepare_rerun, whose, failed=failed, rerun_of=whose, request=request, actor=caller.actor
        )
    return await farm.database.read_async(matrix_view, again, now=now)


@router.get("/matrices/{matrix_id}/cells")
async def get_cells(matrix_id: Count, _: Viewer, farm: Farm, after: After = -1) -> tuple[CellView, ...]:
    """Cells of a matrix behind an index, page by page; an empty page is the end."""
    return await farm.database.read_async(list_cell_views, MatrixId(matrix_id), after=after)


@router.get("/matrices/{matrix_id}/rejected")
async def get_rejected(
    matrix_id: Count, _: Viewer, farm: Farm, after: After = -1
) -> tuple[RejectedCellView, ...]:
    """Cells of a matrix that get no jobs, with their reasons, behind a place; an empty page is the end."""
    return await farm.database.read_async(list_rejected_views, MatrixId(matrix_id), after=after)


@router.get("/jobs")
async def get_jobs(
    matrix_id: Count, _: Viewer, farm: Farm, after: Count = 0, limit: PageSize = MAX_JOBS_PAGE
) -> list[JobView]:
    """The jobs of a matrix in the order they were queued, those after one, page by page: a page that is not
    full is the last."""
    return await farm.database.read_async(list_job_views, MatrixId(matrix_id), after=after, limit=limit)


@router.get("/jobs/{job_id}")
async def get_job(job_id: Count, _: Viewer, farm: Farm) -> JobDetail:
    """One job with its attempts and its number."""
    return await farm.database.read_async(job_detail, JobId(job_id))


@router.get("/jobs/{job_id}/explanation")
async def get_job_explanation(job_id: Count, _: Viewer, farm: Farm) -> JobExplanation:
    """Everything that one number rests on."""
    return await farm.database.read_async(explain_job, JobId(job_id))


@router.get("/cells/{cell_id}/explanation")
async def get_cell_explanation(cell_id: Count, _: Viewer, farm: Farm) -> CellExplanation:
    """Everything that the comparison of a cell with its baseline rests on."""
    return await farm.database.read_async(explain_cell, CellId(cell_id))


@router.get("/jobs/{job_id}/waiting")
async def get_job_waiting(job_id: Count, farm: Farm, caller: Viewer) -> JobPendingView:
    """What a job waits for now, and what to do about it."""
    return await farm.database.read_async(job_waiting, JobId(job_id))


@router.get("/matrices/{matrix_id}/waiting")
async def get_matrix_waiting(matrix_id: Count, farm: Farm, caller: Viewer) -> MatrixPendingView:
    """What is left of a matrix, by phone, and what it waits for there."""
    return await farm.database.read_async(matrix_waiting, MatrixId(matrix_id))
