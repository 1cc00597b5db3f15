"""Routes for matrices and their jobs: plan, submit, watch, cancel and rerun them."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query

from farm.api.context import Context, Farm
from farm.api.http.authorization import Submitter, Viewer
from farm.api.http.past_times import past_time
from farm.core.base.ids import AttemptId, CellId, IdempotencyKey, JobId, MatrixId, idempotency_key
from farm.core.errors import FarmBusy
from farm.core.matrices.standing import StandingSpec
from farm.core.operations.role import Caller, Role, is_permitted
from farm.services.jobs.pending_reasons import job_waiting, matrix_waiting
from farm.services.matrices.cancel import cancel_chunk
from farm.services.matrices.lazy_expansion import store_and_expand
from farm.services.matrices.plan import plan_matrix
from farm.services.matrices.rerun import prepare_rerun
from farm.services.matrices.standing.plan import plan_standing
from farm.services.matrices.submit import (
    PreparedMatrix,
    find_submitted_matrix,
    prepare_matrix,
)
from farm.services.matrices.views import (
    list_cell_views,
    list_job_views,
    list_matrix_summaries,
    list_rejected_views,
    matrix_view,
)
from farm.services.results.explanations.cells import explain_cell
from farm.services.results.explanations.jobs import explain_job, job_detail
from farm.services.results.rerun import plan_rerun, prepare_number_rerun
from farm.store.matrices.search import MatrixFilter
from farm.wire.base import REQUEST_KEY_HEADER, Count
from farm.wire.documents.matrices.jobs import MAX_JOBS_PAGE, JobView
from farm.wire.documents.matrices.matrices import (
    MAX_MATRICES_PAGE,
    CellView,
    MatrixSubmission,
    MatrixSummary,
    MatrixView,
    Rejection,
)
from farm.wire.documents.matrices.matrix import matrix_spec
from farm.wire.documents.matrices.pending import JobPendingView, MatrixPendingView
from farm.wire.documents.matrices.plans import CancellationView, CancelRequest, MatrixPlanView, RerunRequest
from farm.wire.documents.matrices.standing import plannable_spec
from farm.wire.documents.results.explain import CellExplanation, JobDetail, JobExplanation
from farm.wire.documents.results.rerun import RerunPlan

router = APIRouter(prefix="/api/v1")

#: Index of the last row that the client has; -1: none.
After = Annotated[int, Query(ge=-1, lt=2**31)]
PageSize = Annotated[int, Query(ge=1, le=MAX_JOBS_PAGE)]
#: Chosen by the client for one submission: sent again with it, that creates no second matrix.
RequestKeyHeader = Annotated[str | None, Header(alias=REQUEST_KEY_HEADER)]
#: The farm may change between preparing and storing a matrix, which is rare.
MAX_TRIES = 10
#: Clients wait a minute for an answer.
ANSWER_CANCEL_WITHIN_S = 10.0


@router.post("/matrices", status_code=201)
async def post_matrix(
    submission: MatrixSubmission, caller: Submitter, farm: Farm, key: RequestKeyHeader = None
) -> MatrixView:
    """Submit a matrix; it is kept when this returns. The jobs of a large one are queued piece by piece.

    The same request under the same `Idempotency-Key` is answered with the matrix it made, another with 409.
    """
    spec = submission.spec
    idempotency = idempotency_key(key, "matrices", spec)
    return await submit(
        farm,
        idempotency,
        lambda connection: prepare_matrix(connection, matrix_spec(spec)),
        caller,
    )


async def submit(
    farm: Context,
    idempotency: IdempotencyKey | None,
    prepare: Callable[..., PreparedMatrix],
    caller: Caller,
    *,
    rerun_of: MatrixId | None = None,
) -> MatrixView:
    """Return the matrix of this key, or store what `prepare` makes of the current farm.

    It is prepared in a transaction that only reads, and stored in a short one that writes.

    Raises:
        FarmBusy: devices, variants or programs changed between the two, each time.
        LimitReached: the caller has too many unfinished jobs already.
    """
    actor = caller.actor
    matrix_id = await farm.database.read_async(find_submitted_matrix, idempotency, actor=actor)
    store, view = farm.bind(store_and_expand, actor=actor), farm.bind(matrix_view)
    quota = None if is_permitted(caller.role, Role.OPERATOR) else farm.config.open_jobs_per_person
    for _ in range(MAX_TRIES):
        if matrix_id is not None:
            break
        prepared = await farm.database.read_async(prepare)
        matrix_id = await farm.database.change_async(
            store, prepared, rerun_of=rerun_of, idempotency=idempotency, most_open_jobs=quota
        )
    if matrix_id is None:
        raise FarmBusy(
            "devices, variants or programs kept changing while the matrix was prepared",
            hint="submit the matrix again",
        )
    farm.to_expand.set()
    return await farm.database.read_async(view, matrix_id)


@router.post("/matrices/plan")
async def post_plan(submission: MatrixSubmission, _: Viewer, farm: Farm) -> MatrixPlanView:
    """Return the plan of a matrix, or of one that is to stand; nothing is queued."""
    spec = plannable_spec(submission.spec)
    if isinstance(spec, StandingSpec):
        return await farm.database.read_async(farm.bind(plan_standing), spec)
    return await farm.database.read_async(plan_matrix, spec)


@router.get("/matrices")
async def get_matrices(
    caller: Viewer,
    farm: Farm,
    before: Count | None = None,
    since: datetime | None = None,
    name: str | None = Query(default=None, max_length=256),
    mine: bool = False,
    limit: Annotated[int, Query(ge=1, le=MAX_MATRICES_PAGE)] = MAX_MATRICES_PAGE,
) -> list[MatrixSummary]:
    """Return a page of matrices, newest first: those before one. An empty page is the end.

    They are those since a time, with a text in their name, or submitted by the caller.
    """
    which = MatrixFilter(
        since=past_time("since", since, now=farm.clock.now()),
        name=name,
        submitted_by=caller.actor if mine else None,
    )
    return await farm.database.read_async(
        farm.bind(list_matrix_summaries),
        before=None if before is None else MatrixId(before),
        limit=limit,
        which=which,
        counted=farm.counted_matrices,
    )


@router.get("/matrices/{matrix_id}")
async def get_matrix(matrix_id: Count, _: Viewer, farm: Farm) -> MatrixView:
    """Return a matrix with its progress and cells."""
    return await farm.database.read_async(
        farm.bind(matrix_view), MatrixId(matrix_id), counted=farm.counted_matrices
    )


@router.post("/matrices/{matrix_id}/cancel")
async def post_cancel(
    matrix_id: Count, cancellation: CancelRequest, caller: Submitter, farm: Farm
) -> CancellationView:
    """End what is left of a matrix; again is no error. Of a large one a part: then `is_done` is false.

    A caller that asks again until it is done waits for as long as it takes, without a long answer.
    """
    until_s = farm.clock.monotonic() + ANSWER_CANCEL_WITHIN_S
    while True:
        # Of a large matrix in several transactions: agents have their turn between them.
        view = await farm.database.change_async(
            farm.bind(cancel_chunk, actor=caller.actor),
            MatrixId(matrix_id),
            device=cancellation.device,
        )
        if view.is_done or farm.clock.monotonic() >= until_s:
            return view


@router.post("/matrices/{matrix_id}/rerun", status_code=201)
async def post_rerun(
    matrix_id: Count, rerun: RerunRequest, caller: Submitter, farm: Farm, key: RequestKeyHeader = None
) -> MatrixView:
    """Submit the spec of a matrix again, over what the farm has now; `Idempotency-Key` as for a matrix."""
    source_id = MatrixId(matrix_id)
    idempotency = idempotency_key(key, f"matrices/{matrix_id}/rerun", rerun.model_dump())
    prepare = partial(prepare_rerun, matrix_id=source_id, failed=rerun.failed)
    return await submit(farm, idempotency, prepare, caller, rerun_of=source_id)


@router.get("/attempts/{attempt_id}/rerun")
async def get_number_rerun(attempt_id: Count, _: Viewer, farm: Farm) -> RerunPlan:
    """Return how the number of an attempt is measured again, and what is no longer the same."""
    return await farm.database.read_async(plan_rerun, AttemptId(attempt_id))


@router.post("/attempts/{attempt_id}/rerun", status_code=201)
async def post_number_rerun(
    attempt_id: Count, caller: Submitter, farm: Farm, key: RequestKeyHeader = None
) -> MatrixView:
    """Measure the number of an attempt again, by the same files, in a matrix; the key as for a matrix."""
    idempotency = idempotency_key(key, f"attempts/{attempt_id}/rerun", {})
    plan = await farm.database.read_async(plan_rerun, AttemptId(attempt_id))
    prepare = partial(prepare_number_rerun, attempt_id=AttemptId(attempt_id))
    return await submit(farm, idempotency, prepare, caller, rerun_of=plan.matrix_id)


@router.get("/matrices/{matrix_id}/cells")
async def get_cells(matrix_id: Count, _: Viewer, farm: Farm, after: After = -1) -> tuple[CellView, ...]:
    """Return the cells of a matrix behind an index, page by page; an empty page is the end."""
    return await farm.database.read_async(list_cell_views, MatrixId(matrix_id), after=after)


@router.get("/matrices/{matrix_id}/rejected")
async def get_rejected(matrix_id: Count, _: Viewer, farm: Farm, after: After = -1) -> tuple[Rejection, ...]:
    """Return the rejected cells of a matrix behind an index, with their reasons; an empty page is the end."""
    return await farm.database.read_async(list_rejected_views, MatrixId(matrix_id), after=after)


@router.get("/jobs")
async def get_jobs(
    matrix_id: Count, _: Viewer, farm: Farm, after: Count = 0, limit: PageSize = MAX_JOBS_PAGE
) -> list[JobView]:
    """Return a page of jobs of a matrix after one, in queue order; a page that is not full is the last."""
    return await farm.database.read_async(list_job_views, MatrixId(matrix_id), after=after, limit=limit)


@router.get("/jobs/{job_id}")
async def get_job(job_id: Count, _: Viewer, farm: Farm) -> JobDetail:
    """Return one job with its attempts and its measurement."""
    return await farm.database.read_async(job_detail, JobId(job_id))


@router.get("/jobs/{job_id}/explanation")
async def get_job_explanation(job_id: Count, _: Viewer, farm: Farm) -> JobExplanation:
    """Return everything that one number rests on."""
    return await farm.database.read_async(explain_job, JobId(job_id))


@router.get("/cells/{cell_id}/explanation")
async def get_cell_explanation(cell_id: Count, _: Viewer, farm: Farm) -> CellExplanation:
    """Return everything that the comparison of a cell with its baseline rests on."""
    return await farm.database.read_async(explain_cell, CellId(cell_id))


@router.get("/jobs/{job_id}/waiting")
async def get_job_waiting(job_id: Count, farm: Farm, caller: Viewer) -> JobPendingView:
    """Return what a job waits for now, and what to do about it."""
    return await farm.database.read_async(job_waiting, JobId(job_id))


@router.get("/matrices/{matrix_id}/waiting")
async def get_matrix_waiting(matrix_id: Count, farm: Farm, caller: Viewer) -> MatrixPendingView:
    """Return the remaining jobs of a matrix by device, and what they wait for."""
    return await farm.database.read_async(matrix_waiting, MatrixId(matrix_id))
