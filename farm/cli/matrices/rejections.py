"""The cells of a matrix that get no jobs: those with the same reason together."""

from collections.abc import Iterator, Sequence

from farm.cli.shell.tables import Listing, name, prose
from farm.core.matrices.matrix import RejectedCells
from farm.presentation.cell_state import rejected_cells
from farm.presentation.labels import names_text
from farm.wire.documents.matrices.matrices import MatrixView


def missing_cells(view: MatrixView) -> Sequence[RejectedCells]:
    """Return the cells that are not run because a file is missing."""
    return rejected_cells(rejected for rejected in view.rejected_list if rejected.kind.wants_file)


def _result(cells: RejectedCells) -> str:
    """Return `not run` where a file is missing, else `no jobs`."""
    return "not run" if cells.kind.wants_file else "no jobs"


not_run_table = Listing[RejectedCells](
    prose("cell", lambda cells: names_text(cells.labels)),
    name(
        "device",
        lambda cells: names_text(cells.devices) or None,
        is_shown=lambda rows: any(row.devices for row in rows),
    ),
    name("result", _result),
    prose("why", lambda cells: cells.reason),
)


def rejections(view: MatrixView, *, without_missing: bool = False) -> Iterator[str]:
    """Return one line for each reason and the cells that have it, which get no jobs."""
    for cells in rejected_cells(view.rejected_list):
        if without_missing and cells.kind.wants_file:
            continue
        where = f" on {names_text(cells.devices)}" if cells.devices else ""
        yield f"{names_text(cells.labels)}{where}: {_result(cells)}, {cells.reason}"
    if more := view.rejected - len(view.rejected_list):
        yield f"{more} more: GET /api/v1/matrices/{view.matrix_id}/rejected?after=INDEX returns all"
