"""Why is it waiting?"""

from fastapi import APIRouter

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import JobId, MatrixId
from farm.services.jobs.pending_reasons import job_waiting, matrix_waiting
from farm.wire.base import Count
from farm.wire.documents.matrices.pending import JobPendingView, MatrixPendingView

router = APIRouter(prefix="/api/v1")


@router.get("/jobs/{job_id}/waiting")
async def get_job_waiting(job_id: Count, farm: Farm, caller: Viewer) -> JobPendingView:
    """What a job waits for now, and what to do about it."""
    return await farm.database.read_async(job_waiting, JobId(job_id))


@router.get("/matrices/{matrix_id}/waiting")
async def get_matrix_waiting(matrix_id: Count, farm: Farm, caller: Viewer) -> MatrixPendingView:
    """What is left of a matrix, by phone, and what it waits for there."""
    return await farm.database.read_async(matrix_waiting, MatrixId(matrix_id))
