"""Routes for changes in the history of series: list them, show their evidence, say what they are."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from farm.api.context import Farm
from farm.api.http.authorization import Submitter, Viewer
from farm.api.http.past_times import past_time
from farm.core.results.history.recorded_change import ChangeCause, ChangeState
from farm.services.results.history.changes import change_detail, decide, list_changes
from farm.store.matrices.search import matrices_of
from farm.wire.base import Count
from farm.wire.documents.results.changes import (
    MAX_CHANGES_PAGE,
    ChangeDetail,
    ChangeStateRequest,
    ChangeView,
)

router = APIRouter(prefix="/api/v1/changes")


@router.get("")
async def get_changes(
    caller: Viewer,
    farm: Farm,
    since: datetime | None = None,
    device: str | None = Query(default=None, max_length=128),
    model: str | None = Query(default=None, max_length=128),
    cause: ChangeCause | None = None,
    state: ChangeState | None = None,
    name: str | None = Query(default=None, max_length=256),
    mine: bool = False,
    all: bool = False,
    after: Count | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_CHANGES_PAGE)] = MAX_CHANGES_PAGE,
) -> list[ChangeView]:
    """Return the changes behind one, those told last first; without `all`, only what is slower since.

    With `name` or `mine`, a matrix of that name, or of the caller, measured a series that shows them.
    """
    return await farm.database.read_async(
        list_changes,
        device=device,
        model=model,
        since=past_time("since", since, now=farm.clock.now()),
        cause=cause,
        state=state,
        which=matrices_of(name=name, person=caller.actor if mine else None),
        all=all,
        after=after,
        limit=limit,
    )


@router.get("/{change_id}")
async def get_change(change_id: Count, _: Viewer, farm: Farm) -> ChangeDetail:
    """Return a change with its evidence."""
    return await farm.database.read_async(change_detail, change_id)


@router.post("/{change_id}/state")
async def post_change_state(
    change_id: Count, request: ChangeStateRequest, caller: Submitter, farm: Farm
) -> ChangeView:
    """Say what a change is, for a reason that is kept; its alarm is cleared."""
    return await farm.database.write_async(farm.bind(decide, actor=caller.actor), change_id, request)
