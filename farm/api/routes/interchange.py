"""Routes for files of other tools: rows of measurements and what changed in them, and results of others."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from farm.api.context import Farm
from farm.api.http.authorization import Operator, Submitter, Viewer
from farm.api.http.pages import Listed, ListPageSize
from farm.api.http.past_times import past_time
from farm.services.results.interchange.export import (
    ExportRange,
    export_changes,
    export_conditions,
    export_measurements,
    export_samples,
)
from farm.services.results.interchange.imports import (
    external_result_views,
    import_views,
    keep_import,
    log_adapter,
    preview_import,
    read_import,
    withdraw_import,
)
from farm.store.results.interchange.external_results import ExternalFilter
from farm.wire.base import MAX_LIST_PAGE, Count
from farm.wire.documents.results.export import (
    MAX_EXPORT_PAGE,
    ConditionPage,
    ExportChanges,
    MeasurementPage,
    SamplePage,
)
from farm.wire.documents.results.imports import (
    ExternalResultView,
    ImportAnswer,
    ImportRequest,
    ImportView,
    WithdrawalRequest,
)

router = APIRouter(prefix="/api/v1")


async def _range(
    farm: Farm,
    after: Count = 0,
    before: Count = 2**53 - 1,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_EXPORT_PAGE)] = MAX_EXPORT_PAGE,
) -> ExportRange:
    now = farm.clock.now()
    return ExportRange(
        after=after,
        before=before,
        since=past_time("since", since, now=now),
        until=past_time("until", until, now=now),
        limit=limit,
    )


Wanted = Annotated[ExportRange, Depends(_range)]


@router.get("/export/measurements")
async def get_exported_measurements(_: Viewer, farm: Farm, wanted: Wanted) -> MeasurementPage:
    """Return the measurements that count of the next numbers; a page may be empty before the end."""
    return await farm.database.read_async(export_measurements, wanted)


@router.get("/export/samples")
async def get_exported_samples(_: Viewer, farm: Farm, wanted: Wanted) -> SamplePage:
    """Return the single iterations of the measurements that count of the next numbers."""
    return await farm.database.read_async(export_samples, wanted)


@router.get("/export/conditions")
async def get_exported_conditions(_: Viewer, farm: Farm, wanted: Wanted) -> ConditionPage:
    """Return the looks at devices around the runs of the next numbers, at most 100 runs at once."""
    return await farm.database.read_async(export_conditions, wanted)


@router.get("/export/changes")
async def get_export_changes(
    _: Viewer, farm: Farm, after: Count = 0, since: datetime | None = None
) -> ExportChanges:
    """Return what a file of an earlier export does not have."""
    now = farm.clock.now()
    return await farm.database.read_async(
        export_changes, after=after, since=past_time("since", since, now=now), now=now
    )


@router.post("/imports")
async def post_import(request: ImportRequest, caller: Submitter, farm: Farm) -> ImportAnswer:
    """Import a file of results that others measured, once; they enter no comparison."""
    name = request.harness
    harness = None if name is None else await farm.database.read_async(log_adapter, name)
    read = await asyncio.to_thread(read_import, request, harness)
    if request.dry_run:
        return await farm.database.read_async(preview_import, read)
    return await farm.database.write_async(farm.bind(keep_import, actor=caller.actor), read)


@router.get("/imports")
async def get_imports(
    _: Viewer,
    farm: Farm,
    which: Listed,
    before: Count | None = None,
    limit: ListPageSize = MAX_LIST_PAGE,
) -> list[ImportView]:
    """Return a page of the imported files, newest first: those before one. An empty page is the end.

    They are those since a time, with a text in their name, or imported by the caller.
    """
    return await farm.database.read_async(import_views, which, before=before, limit=limit)


@router.post("/imports/{import_id}/withdrawal")
async def post_withdrawal(
    import_id: Count, request: WithdrawalRequest, caller: Operator, farm: Farm
) -> ImportView:
    """Withdraw an imported file for a reason; the same file can be imported again."""
    withdraw = farm.bind(withdraw_import, actor=caller.actor)
    return await farm.database.write_async(withdraw, import_id, request.reason)


ExternalName = Annotated[str | None, Query(max_length=500)]


@router.get("/external-results")
async def get_external_results(
    _: Viewer,
    farm: Farm,
    import_id: Count | None = None,
    model: ExternalName = None,
    device: ExternalName = None,
    tool: ExternalName = None,
    metric: ExternalName = None,
    withdrawn: bool = False,
    after: Count = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_EXPORT_PAGE)] = MAX_EXPORT_PAGE,
) -> list[ExternalResultView]:
    """Return a page of the results that others measured, by number; an empty page is behind the last."""
    wanted = ExternalFilter(
        import_id=import_id, model=model, device=device, tool=tool, metric=metric, withdrawn=withdrawn
    )
    return await farm.database.read_async(external_result_views, wanted, after=after, limit=limit)
