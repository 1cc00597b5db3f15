"""`farm speedups`: what is faster than what, on which phone."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.matrices.argument import MatrixArgument, MatrixOption, selected_matrix
from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, first_rows, out, print_json_list, print_notice

if TYPE_CHECKING:
    from farm.wire.documents.matrices.matrices import SpeedupView

#: Below a table, so many of its rows are named with their cells.
_ROWS_NUMBERED = 4


def speedups(
    number: MatrixArgument = None,
    matrix: MatrixOption = None,
    device: Annotated[str | None, typer.Option(help="On this device only.")] = None,
    model: Annotated[str | None, typer.Option(help="Of this model only.")] = None,
    across_controls: Annotated[
        bool,
        typer.Option(
            "--across-controls",
            help="Compare runs of different control levels, too: free, pinned (to cores), fixed (clocks).",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare every candidate with its baseline, device by device.

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
        print_notice("Runs of different control levels count, too: what was set may be the difference.")


def print_speedups(comparisons: "Iterable[SpeedupView]") -> None:
    """The table on stdout; on stderr what to do where there is none, or where all are."""
    from farm.cli.results.speedup_table import speedup_table
    from farm.cli.shell.next_steps import farm_command

    views = first_rows(
        comparisons, where_all_are="--device and --model show less, `farm speedups --json` all."
    )
    if not views:
        print_notice("Nothing to compare yet: `farm matrix list` shows how far the matrices are.")
        return
    console = out()
    console.print(speedup_table(views, width=console.width), soft_wrap=True)
    print_notice(f"What a row rests on: {farm_command()} explain cell {_numbered_examples(views)}")


def _numbered_examples(views: "Sequence[SpeedupView]") -> str:
    """`12 (int8-core lite) or 13 (float16 lite)`; some of many."""
    names = [f"{view.cell_id} ({view.candidate})" for view in views[:_ROWS_NUMBERED]]
    more = len(views) - len(names)
    return " or ".join(names) + (f"; `farm speedups --json` has the cells of {more} more" if more else "")
