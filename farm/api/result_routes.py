"""What matrices measured."""

from fastapi import APIRouter

from farm.api.callers import Viewer
from farm.api.context import Farm
from farm.core.ids import MatrixId
from farm.services.results import list_results
from farm.wire.base import Count
from farm.wire.result_views import ResultView

router = APIRouter(prefix="/api/v1/matrices")


@router.get("/{matrix_id}/results")
async def get_results(matrix_id: Count, _: Viewer, farm: Farm) -> list[ResultView]:
    """Every cell of a matrix with its values over rounds."""
    return await farm.database.read_async(list_results, MatrixId(matrix_id))
