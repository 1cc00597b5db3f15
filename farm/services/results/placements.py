"""List the hardware that work ran on, series by series."""

from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.services.devices.views import device_id_named
from farm.store.matrices.matrices import get_matrix
from farm.store.results.placements import placed_series
from farm.wire.documents.results.results import PlacedSeries


def list_placements(
    connection: Connection, *, matrix_id: MatrixId | None = None, device: str | None = None
) -> list[PlacedSeries]:
    """Return each measured series, of a matrix or device if given, with the hardware of its last measurement.

    `device` is an id, a label, or the beginning of either. Raises like `get_matrix` and `device_named`.
    """
    if matrix_id is not None:
        get_matrix(connection, matrix_id)
    device_id = None if device is None else device_id_named(connection, device)
    return placed_series(connection, matrix_id=matrix_id, device_id=device_id)
