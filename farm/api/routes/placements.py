"""Where work ran."""

from fastapi import APIRouter, Query

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import MatrixId
from farm.services.results.placements import list_placements
from farm.wire.base import Count
from farm.wire.documents.results.placements import SeriesPlacementView

router = APIRouter(prefix="/api/v1/placements")


@router.get("")
async def get_placements(
    _: Viewer,
    farm: Farm,
    matrix_id: Count | None = None,
    device: str | None = Query(default=None, max_length=128),
) -> list[SeriesPlacementView]:
    """Which hardware each series ran on, by its newest measurement."""
    return await farm.database.read_async(
        list_placements, matrix_id=None if matrix_id is None else MatrixId(matrix_id), device=device
    )
