"""Routes for files of other tools: rows of measurements, samples and conditions, and what changed in them."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.api.http.past_times import past_time
from farm.services.results.interchange.export import (
    ExportRange,
    export_changes,
    export_conditions,
    export_measurements,
    export_samples,
)
from farm.wire.base import Count
from farm.wire.documents.results.export import (
    MAX_EXPORT_PAGE,
    ConditionPage,
    ExportChanges,
    MeasurementPage,
    SamplePage,
)

router = APIRouter(prefix="/api/v1/export")


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


@router.get("/measurements")
async def get_exported_measurements(_: Viewer, farm: Farm, wanted: Wanted) -> MeasurementPage:
    """Return the measurements that count of the next numbers; a page may be empty before the end."""
    return await farm.database.read_async(export_measurements, wanted)


@router.get("/samples")
async def get_exported_samples(_: Viewer, farm: Farm, wanted: Wanted) -> SamplePage:
    """Return the single iterations of the measurements that count of the next numbers."""
    return await farm.database.read_async(export_samples, wanted)


@router.get("/conditions")
async def get_exported_conditions(_: Viewer, farm: Farm, wanted: Wanted) -> ConditionPage:
    """Return the looks at devices around the runs of the next numbers, at most 100 runs at once."""
    return await farm.database.read_async(export_conditions, wanted)


@router.get("/changes")
async def get_export_changes(
    _: Viewer, farm: Farm, after: Count = 0, since: datetime | None = None
) -> ExportChanges:
    """Return what a file of an earlier export does not have."""
    now = farm.clock.now()
    return await farm.database.read_async(
        export_changes, after=after, since=past_time("since", since, now=now), now=now
    )
