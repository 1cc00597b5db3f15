"""Results and placements of matrices, and reparsing of stored evidence."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from farm.api.context import Context, Farm
from farm.api.http.authorization import Operator, Viewer
from farm.api.http.past_times import past_time
from farm.core.base.ids import AttemptId, MatrixId, SeriesId
from farm.core.errors import InvalidInput
from farm.core.operations.event import AccessEvent
from farm.services.files.programs import harness_view
from farm.services.matrices.cell_samples import list_samples
from farm.services.results.cells import list_results
from farm.services.results.history.group_speedups import group_speedups
from farm.services.results.history.retractions import apply_retraction
from farm.services.results.history.trends import list_histories
from farm.services.results.placements import list_placements
from farm.services.results.reparse import ReparseScan, apply_changes, compare_readings, stale_reports
from farm.store.matrices.matrices import get_matrix
from farm.store.matrices.search import matrices_of
from farm.store.results.reparse import ReparseSelection
from farm.wire.base import Count
from farm.wire.documents.results.history import (
    MAX_HISTORY_PAGE,
    GroupBy,
    GroupSpeedupView,
    RetractPage,
    RetractRequest,
    SeriesHistory,
)
from farm.wire.documents.results.results import (
    MAX_RESULTS_PAGE,
    PlacedSeries,
    ReparsePage,
    ReparseRequest,
    ResultView,
)
from farm.wire.documents.results.samples import MAX_SAMPLED_CELLS, SampledCell

router = APIRouter(prefix="/api/v1")


@router.get("/matrices/{matrix_id}/results")
async def get_results(
    matrix_id: Count,
    _: Viewer,
    farm: Farm,
    after: Annotated[int, Query(ge=-1, lt=2**31)] = -1,
    limit: Annotated[int, Query(ge=1, le=MAX_RESULTS_PAGE)] = MAX_RESULTS_PAGE,
) -> list[ResultView]:
    """Return the values of cells of a matrix behind an index, over rounds; an empty page is the end."""
    return await farm.database.read_async(list_results, MatrixId(matrix_id), after=after, limit=limit)


@router.get("/matrices/{matrix_id}/samples")
async def get_samples(
    matrix_id: Count,
    caller: Viewer,
    farm: Farm,
    after: Annotated[int, Query(ge=-1, lt=2**31)] = -1,
    limit: Annotated[int, Query(ge=1, le=MAX_SAMPLED_CELLS)] = MAX_SAMPLED_CELLS,
) -> list[SampledCell]:
    """Return cells of a matrix behind an index with all samples of their runs; an empty page is the end."""
    cells = await farm.database.read_async(list_samples, MatrixId(matrix_id), after=after, limit=limit)
    farm.evidence_reads.note(caller, AccessEvent.SAMPLES_READ, matrix_id)
    return cells


@router.get("/history")
async def get_history(
    caller: Viewer,
    farm: Farm,
    device: str | None = Query(default=None, max_length=128),
    model: str | None = Query(default=None, max_length=128),
    harness: str | None = Query(default=None, max_length=128),
    variant: str | None = Query(default=None, max_length=256),
    since: datetime | None = None,
    name: str | None = Query(default=None, max_length=256),
    mine: bool = False,
    after: Count = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_HISTORY_PAGE)] = MAX_HISTORY_PAGE,
) -> list[SeriesHistory]:
    """Return the points of series behind one, oldest first; an empty page is the end.

    With `name` or `mine`, they are points of matrices of that name, or that the caller submitted.
    """
    return await farm.database.read_async(
        list_histories,
        device=device,
        model=model,
        harness=harness,
        variant=variant,
        since=past_time("since", since, now=farm.clock.now()),
        which=matrices_of(name=name, person=caller.actor if mine else None),
        after=SeriesId(after),
        limit=limit,
    )


@router.get("/speedups/groups")
async def get_group_speedups(
    _: Viewer,
    farm: Farm,
    by: GroupBy,
    model: str | None = Query(default=None, max_length=128),
    baseline: str | None = Query(default=None, max_length=256),
    candidate: str | None = Query(default=None, max_length=256),
    since: datetime | None = None,
    at: datetime | None = None,
) -> list[GroupSpeedupView]:
    """Return the newest speedups over devices that have something in common, each device counted once."""
    return await farm.database.read_async(
        group_speedups,
        by,
        model=model,
        baseline=baseline,
        candidate=candidate,
        since=past_time("since", since, now=farm.clock.now()),
        at=past_time("at", at, now=farm.clock.now()),
    )


@router.post("/retractions")
async def post_retraction(request: RetractRequest, caller: Operator, farm: Farm) -> RetractPage:
    """Withdraw measurements for a reason, or let them count again; asked again until there is no more."""
    page = await farm.database.write_async(farm.bind(apply_retraction, actor=caller.actor), request)
    farm.to_compute_points.set()
    return page


@router.get("/placements")
async def get_placements(
    _: Viewer,
    farm: Farm,
    matrix_id: Count | None = None,
    device: str | None = Query(default=None, max_length=128),
) -> list[PlacedSeries]:
    """Return the hardware each series ran on, by its newest measurement."""
    return await farm.database.read_async(
        list_placements, matrix_id=None if matrix_id is None else MatrixId(matrix_id), device=device
    )


@router.post("/reparse")
async def post_reparse(request: ReparseRequest, caller: Operator, farm: Farm) -> ReparsePage:
    """Parse the next page of evidence with the present adapters; with `dry_run` only report the changes."""
    if request.since is not None and request.since.tzinfo is None:
        raise InvalidInput("since: a time without a zone", hint="write it like 2026-03-01T00:00:00Z")
    scan = await asyncio.to_thread(_scan, farm, request)
    if request.dry_run or not scan.pending:
        return scan.page
    changes = await farm.database.write_async(farm.bind(apply_changes, actor=caller.actor), scan.pending)
    farm.to_compute_points.set()
    return scan.page.model_copy(update={"changes": tuple(changes)})


def _scan(farm: Context, request: ReparseRequest) -> ReparseScan:
    if request.matrix_id is not None:
        farm.database.read(get_matrix, request.matrix_id)
    if request.harness is not None:
        farm.database.read(harness_view, request.harness)
    selection = ReparseSelection(matrix_id=request.matrix_id, harness=request.harness, since=request.since)
    stored = farm.database.read(
        farm.bind(stale_reports),
        selection,
        after=AttemptId(request.after),
        limit=request.limit,
    )
    # The transaction is over: parsing may take long.
    return compare_readings(stored, farm.report_parser.processes.parse)
