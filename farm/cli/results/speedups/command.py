"""`farm speedups`: comparisons by device, over groups of devices, or as a pivot."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from farm.cli.results.gate import GateOption, judge, print_gate
from farm.cli.results.speedups.groups import ByOption, check_by, group_tables
from farm.cli.results.speedups.pivot import pivot_tables
from farm.cli.results.speedups.table import speedup_table
from farm.cli.shell.address import connect
from farm.cli.shell.next_steps import farm_command
from farm.cli.shell.options import (
    At,
    Json,
    MatrixArgument,
    MatrixOption,
    PastSince,
    selected_matrix,
)
from farm.cli.shell.output import first_rows, out, print_json_list, print_notice, show
from farm.core.errors import InvalidInput
from farm.presentation.text import past_moment
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
    pivot: Annotated[
        bool, typer.Option("--pivot", help="Candidates by devices, with times and marks.")
    ] = False,
    gate: GateOption = None,
    since: PastSince = None,
    at: At = None,
    by: ByOption = None,
    as_json: Json = False,
) -> None:
    """Compare every candidate with its baseline, by device.

    Without a matrix, each pair is compared over its newest matrices of equal versions: file, program, build
    and controls; 20 of them at most.

    Example: farm speedups 3 --device phone-1
    """
    matrix_id = selected_matrix(number, matrix)
    begin, known_at = past_moment(since, option="--since"), past_moment(at, option="--at")
    if matrix_id is not None and begin is not None:
        raise InvalidInput("--since goes with all matrices, not with one", hint="leave one of them out")
    if begin is not None and known_at is not None and begin > known_at:
        raise InvalidInput("--since is later than --at", hint="give an earlier --since")
    if by is not None:
        check_by(by, others=(matrix_id, device, gate, known_at, across_controls or None, pivot or None))
        with connect() as farm:
            groups = farm.group_speedups(by, model=model, since=begin)
        show(groups, group_tables, as_json=as_json)
        return
    with connect() as farm:
        views = farm.speedups(
            matrix_id=matrix_id,
            device=device,
            model=model,
            across_controls=across_controls,
            since=begin,
            at=known_at,
        )
        if gate is not None:
            views = iter(compared := list(views))
        if as_json:
            print_json_list(views)
        else:
            print_speedups(views, pivot=pivot)
    if across_controls and not as_json:
        print_notice(
            "Runs of different control levels are included: the difference may be caused by the controls."
        )
    if gate is not None:
        judged = judge(gate, compared)
        print_gate(gate, judged)
        raise typer.Exit(judged.outcome.exit_code)


def print_speedups(comparisons: Iterable[SpeedupView], *, pivot: bool = False) -> None:
    """Print the table to stdout, and hints to stderr."""
    views = first_rows(
        comparisons, where_all_are="--device and --model select fewer, `farm speedups --json` prints all."
    )
    if not views:
        print_notice("No comparisons yet: `farm matrix list` shows the progress of matrices.")
        return
    console = out()
    draw = pivot_tables if pivot else speedup_table
    console.print(draw(views, width=console.width), soft_wrap=True)
    print_notice(f"Details: {farm_command()} explain cell {_numbered_examples(views)}")


def _numbered_examples(views: Sequence[SpeedupView]) -> str:
    """Return `12 (int8-core lite) or 13 (float16 lite)`, for the first rows."""
    names = [f"{view.cell_id} ({view.candidate})" for view in views[:_ROWS_NUMBERED]]
    more = len(views) - len(names)
    return " or ".join(names) + (f"; `farm speedups --json` lists {more} more cells" if more else "")
