"""What matrices measured."""

from typing import Annotated

from fastapi import APIRouter, Query

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import MatrixId
from farm.services.results.cells import list_results
from farm.wire.base import Count
from farm.wire.documents.results.results import MAX_RESULTS_PAGE, ResultView

router = APIRouter(prefix="/api/v1/matrices")


@router.get("/{matrix_id}/results")
async def get_results(
    matrix_id: Count,
    _: Viewer,
    farm: Farm,
    after: Annotated[int, Query(ge=-1, lt=2**31)] = -1,
    limit: Annotated[int, Query(ge=1, le=MAX_RESULTS_PAGE)] = MAX_RESULTS_PAGE,
) -> list[ResultView]:
    """Cells of a matrix behind an index, with their values over rounds; an empty page is the end."""
    return await farm.database.read_async(list_results, MatrixId(matrix_id), after=after, limit=limit)
