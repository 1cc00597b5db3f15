"""Where work ran, series by series."""

from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.runs.placement import placement_text
from farm.services.devices.views import device_named
from farm.store.matrices.matrices import get_matrix
from farm.store.results.placements import PlacedSeries, placed_series
from farm.wire.documents.results.placements import SeriesPlacementView


def list_placements(
    connection: Connection, *, matrix_id: MatrixId | None = None, device: str | None = None
) -> list[SeriesPlacementView]:
    """Each series that was measured, with where its newest measurement ran.

    Args:
        connection: of the caller's transaction.
        matrix_id: of this matrix only.
        device: only on this device: its id, its label, or the beginning of either.

    Raises:
        NotFound: there is no such matrix, or no such device.
        InvalidInput: several devices begin so.
    """
    if matrix_id is not None:
        get_matrix(connection, matrix_id)
    device_id = None if device is None else device_named(connection, device).device_id
    return [_view(each) for each in placed_series(connection, matrix_id=matrix_id, device_id=device_id)]


def _view(placed: PlacedSeries) -> SeriesPlacementView:
    return SeriesPlacementView(
        series_id=placed.series_id,
        device_id=placed.device_id,
        model=placed.model,
        recipe=placed.recipe,
        harness=placed.harness,
        backend=placed.backend,
        settings=placed.settings,
        actual_backend=placed.actual_backend,
        accelerator=placed.accelerator,
        words=placed.accelerator if placed.placement is None else placement_text(placed.placement),
        quality=placed.quality,
        proof=placed.proof,
        placement=placed.placement,
        attempt_id=placed.attempt_id,
        measured_at=placed.measured_at,
    )
