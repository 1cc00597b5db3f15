"""`farm placement`: which hardware each variant really ran on, device by device."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.matrices.argument import MatrixArgument, MatrixOption, selected_matrix
from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json, print_notice

if TYPE_CHECKING:
    from farm.wire.documents.results.placements import SeriesPlacementView


def placement(
    number: MatrixArgument = None,
    matrix: MatrixOption = None,
    device: Annotated[str | None, typer.Option(help="On this device only.")] = None,
    as_json: Json = False,
) -> None:
    """Show which hardware ran what: a row for each variant, backend and settings, a column for each device.

    `dsp 136/139, cpu 3` counts the model's nodes. What ran on the CPU though something else was asked for is
    called `fallback`, what nothing shows `unproven`.

    Example: farm placement 3
    """
    matrix_id = selected_matrix(number, matrix)
    with connect() as farm:
        views = farm.placements(matrix_id=matrix_id, device=device)
    if as_json:
        print_json([view.model_dump(mode="json") for view in views])
    else:
        print_placements(views)


def print_placements(views: "Sequence[SeriesPlacementView]") -> None:
    """The table on stdout; on stderr where the proof of a row is."""
    from farm.cli.results.placement_table import placement_table
    from farm.cli.shell.next_steps import farm_command

    if not views:
        print_notice("Nothing has been measured yet: `farm matrix list` shows how far the matrices are.")
        return
    out().print(placement_table(views))
    newest = max(views, key=lambda view: view.measured_at)
    print_notice(f"What shows it, run by run: {farm_command()} attempt show {newest.attempt_id}")
