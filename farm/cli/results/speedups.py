"""`farm speedups`: show all speedups by device."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.matrices.argument import MatrixArgument, MatrixOption, selected_matrix
from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, first_rows, out, print_json_list, print_notice

if TYPE_CHECKING:
    from farm.wire.documents.matrices.matrices import SpeedupView

#: Rows named with their cells below a table.
_ROWS_NUMBERED = 4


def speedups(
    number: MatrixArgument = None,
    matrix: MatrixOption = None,
    device: Annotated[str | None, typer.Option(help="Only this device.")] = None,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    across_controls: Annotated[
        bool,
        typer.Option(
            "--across-controls",
            help="Also compare runs of different control levels: free, pinned (to cores), fixed (clocks).",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare every candidate with its baseline, by device.

    Example: farm speedups 3 --device phone-1
    """
    matrix_id = selected_matrix(number, matrix)
    with connect() as farm:
        views = farm.speedups(
            matrix_id=matrix_id, device=device, model=model, across_controls=across_controls
        )
        if as_json:
            print_json_list(views)
            return
        print_speedups(views)
    if across_controls:
        print_notice(
            "Runs of different control levels are included: the difference may be caused by the controls."
        )


def print_speedups(comparisons: "Iterable[SpeedupView]") -> None:
    """Print the table to stdout, and hints to stderr."""
    from farm.cli.results.speedup_table import speedup_table
    from farm.cli.shell.next_steps import farm_command

    views = first_rows(
        comparisons, where_all_are="--device and --model select fewer, `farm speedups --json` prints all."
    )
    if not views:
        print_notice("No comparisons yet: `farm matrix list` shows the progress of matrices.")
        return
    console = out()
    console.print(speedup_table(views, width=console.width), soft_wrap=True)
    print_notice(f"Details: {farm_command()} explain cell {_numbered_examples(views)}")


def _numbered_examples(views: "Sequence[SpeedupView]") -> str:
    """Return `12 (int8-core lite) or 13 (float16 lite)`, for the first rows."""
    names = [f"{view.cell_id} ({view.candidate})" for view in views[:_ROWS_NUMBERED]]
    more = len(views) - len(names)
    return " or ".join(names) + (f"; `farm speedups --json` lists {more} more cells" if more else "")
