"""`farm placement`: show which hardware each variant ran on, by device."""

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
    device: Annotated[str | None, typer.Option(help="Only this device.")] = None,
    as_json: Json = False,
) -> None:
    """Show which hardware ran each variant, backend and settings, with a column for each device.

    `dsp 136/139, cpu 3` counts the nodes of the model. `fallback` marks runs on the CPU although another
    backend was requested; `unproven` marks runs without a proof of the placement.

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
    """Print the table to stdout, and to stderr where the proof of a row is."""
    from farm.cli.results.placement_table import placement_table
    from farm.cli.shell.next_steps import farm_command

    if not views:
        print_notice("No measurements yet: `farm matrix list` shows the progress of matrices.")
        return
    out().print(placement_table(views))
    newest = max(views, key=lambda view: view.measured_at)
    print_notice(f"Proof of a run: {farm_command()} attempt show {newest.attempt_id}")
