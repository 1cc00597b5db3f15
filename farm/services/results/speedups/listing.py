"""List the comparisons of a matrix."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, MatrixId
from farm.core.errors import NotFound
from farm.core.results.history.chosen_labels import PairChoice
from farm.database.known_at import as_known_at
from farm.services.matrices.views import first_page_size
from farm.services.results.history.chosen_cells import candidate_filter, chosen_cells
from farm.services.results.past_pairs import aa_alarms
from farm.services.results.speedups.inputs import SpeedupInputs
from farm.services.results.speedups.pairs import chosen_comparisons, comparisons_of, with_priors
from farm.store.devices import devices
from farm.store.matrices import matrices
from farm.store.matrices.candidates import page_of_candidates
from farm.store.matrices.matrices import CellRow, get_matrix
from farm.wire.documents.results.speedups import MAX_SPEEDUPS_PAGE, SpeedupView

#: For queries of the rows behind another one.
AFTER_HINT = "`after` is the cell_id of the last comparison on the page before"
#: The most comparisons of one page.
PAGE = MAX_SPEEDUPS_PAGE


def list_speedups(
    connection: Connection,
    matrix_id: MatrixId,
    *,
    device: str | None = None,
    model: str | None = None,
    across_controls: bool = False,
    choice: PairChoice | None = None,
    at: datetime | None = None,
    after: CellId | None = None,
    limit: int = PAGE,
) -> list[SpeedupView]:
    """Return a page of the comparisons of a matrix, by the places of their candidates; none at the end.

    Args:
        device: only on this device: its id, its label, or the beginning of either.
        model: only of this model.
        across_controls: whether rounds count in which the phone was controlled in different degrees.
        choice: only these pairs, which the matrix may not have planned.
        at: as known then: by what was measured, and not retracted or parsed again later.
        after: only those behind the one of this candidate.
        limit: so many at most, and fewer where a matrix has many rounds.

    Raises:
        NotFound: there is no such matrix, or was none then, or no such device, model, baseline or candidate.
        InvalidInput: several devices begin so, or several baselines are named so.
    """
    among = candidate_filter(connection, device=device, model=model)
    matrix = get_matrix(connection, matrix_id, at=at)
    as_known_at(connection, at)
    behind = -1 if after is None else _candidate(connection, matrix_id, after).index
    size = min(limit, first_page_size(matrix))
    if choice is None:
        candidates = page_of_candidates(connection, matrix_id, among, after=behind, limit=size)
        compared = comparisons_of(connection, matrix, candidates)
    else:
        chosen = chosen_cells(connection, matrix_id, among, choice, after=behind, limit=size)
        compared = chosen_comparisons(connection, matrix, chosen)
    compared = with_priors(connection, compared)
    return speedup_views(connection, compared, across_controls=across_controls)


def speedup_views(
    connection: Connection, compared: Iterable[SpeedupInputs], *, across_controls: bool = False
) -> list[SpeedupView]:
    """Return comparisons, those of A/A pairs with the alarms of their device."""
    inputs = list(compared)
    device_by_id = devices.devices_by_id(connection, {item.candidate.device_id for item in inputs})
    alarms = aa_alarms(connection, {own.candidate.device_id for own in inputs if own.candidate.replica > 1})
    return [
        item.view(
            device_by_id[item.candidate.device_id],
            across_controls=across_controls,
            aa_alarms=alarms.get(item.candidate.device_id),
        )
        for item in inputs
    ]


def _candidate(connection: Connection, matrix_id: MatrixId, cell_id: CellId) -> CellRow:
    cell = matrices.find_cell(connection, cell_id)
    if cell is None or cell.matrix_id != matrix_id:
        raise NotFound(f"matrix {matrix_id} has no cell {cell_id}", hint=AFTER_HINT)
    return cell
