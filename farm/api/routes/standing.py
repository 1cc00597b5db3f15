"""Routes for standing matrices: let one stand, list them, show their coverage, end one."""

import asyncio

from fastapi import APIRouter

from farm.api.context import Context, Farm
from farm.api.http.authorization import Submitter, Viewer
from farm.services.matrices.standing.sessions import queue_next, stand
from farm.services.matrices.standing.views import end, list_standing_summaries, standing_view
from farm.wire.base import Count
from farm.wire.documents.matrices.standing import (
    StandingSubmission,
    StandingSummary,
    StandingView,
    standing_spec,
)

router = APIRouter(prefix="/api/v1/standing-matrices")


@router.post("", status_code=201)
async def post_standing(submission: StandingSubmission, caller: Submitter, farm: Farm) -> StandingView:
    """Let a matrix stand, or replace the spec of the one of its name; what is missing is queued at once."""
    spec = standing_spec(submission.spec)
    standing_id = await farm.database.change_async(farm.bind(stand, actor=caller.actor), spec)
    await asyncio.to_thread(queue_next, farm.database, farm.clock, spec.matrix.name)
    farm.to_expand.set()
    return await _view(farm, standing_id)


@router.get("")
async def get_standing_list(_: Viewer, farm: Farm) -> list[StandingSummary]:
    """Return the matrices that stand, by name."""
    return await farm.database.read_async(list_standing_summaries)


@router.get("/{standing_id}")
async def get_standing(standing_id: Count, _: Viewer, farm: Farm) -> StandingView:
    """Return a standing matrix with its coverage."""
    return await _view(farm, standing_id)


@router.post("/{standing_id}/end")
async def post_end(standing_id: Count, caller: Submitter, farm: Farm) -> StandingSummary:
    """End a standing matrix; its matrices that are under way go on. Again is 404."""
    return await farm.database.change_async(farm.bind(end, actor=caller.actor), standing_id)


async def _view(farm: Context, standing_id: int) -> StandingView:
    return await farm.database.read_async(farm.bind(standing_view), standing_id)
