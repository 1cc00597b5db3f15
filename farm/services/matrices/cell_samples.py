"""The samples of a matrix, packed as they are stored: unpacking them is the work of who asks."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.services.matrices.cell_setups import cell_setups
from farm.store.devices import devices
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, get_matrix
from farm.store.results.history.sampled_runs import packed_bytes_of, sampled_runs
from farm.wire.documents.results.samples import (
    MAX_SAMPLED_BYTES,
    MAX_SAMPLED_CELLS,
    SampledCell,
)


def list_samples(
    connection: Connection, matrix_id: MatrixId, *, after: int = -1, limit: int = MAX_SAMPLED_CELLS
) -> list[SampledCell]:
    """Return cells of a matrix behind an index with the samples of their runs; none at the end.

    There are fewer than asked for where they have more than 8 MB of packed samples, but at least one. Raises
    like `get_matrix`.
    """
    get_matrix(connection, matrix_id)
    cells = matrices.page_of_cells(connection, matrix_id, after=after, limit=limit)
    cells = cells[: _count_that_fits(connection, cells)]
    if not cells:
        return []
    runs_by_cell = sampled_runs(connection, [cell.cell_id for cell in cells])
    device_by_id = devices.devices_by_id(connection, {cell.device_id for cell in cells})
    setups = cell_setups(connection, cells)
    views = []
    for cell in cells:
        device = device_by_id[cell.device_id]
        facts = device.facts
        views.append(
            SampledCell.of(
                cell,
                setups.setup(cell),
                matrix_id=matrix_id,
                device_label=device.label,
                device_model=facts.device_model if facts else None,
                soc=facts.soc if facts else None,
                virtual=facts.virtual if facts else False,
                runs=tuple(runs_by_cell.get(cell.cell_id, ())),
            )
        )
    return views


def _count_that_fits(connection: Connection, cells: Sequence[CellRow]) -> int:
    bytes_by_cell = packed_bytes_of(connection, [cell.cell_id for cell in cells])
    total_bytes = 0
    for place, cell in enumerate(cells):
        total_bytes += bytes_by_cell.get(cell.cell_id, 0)
        if total_bytes > MAX_SAMPLED_BYTES:
            return max(1, place)
    return len(cells)
