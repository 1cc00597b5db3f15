"""`farm speedups`: comparisons by device, over groups of devices, or as a pivot."""

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Protocol, TypeVar

import typer

from farm.cli.results.gate import GateOption, judge, print_gate
from farm.cli.results.speedups.groups import ByOption, check_by, group_tables, nothing_text
from farm.cli.results.speedups.pivot import pivot_tables
from farm.cli.results.speedups.table import speedup_table
from farm.cli.shell.address import connect
from farm.cli.shell.next_steps import farm_command
from farm.cli.shell.options import (
    At,
    Json,
    MatrixArgument,
    MatrixName,
    MatrixOption,
    MineOfMatrices,
    Since,
    selected_matrix,
)
from farm.cli.shell.output import first_rows, out, print_json_list, print_notice, show
from farm.core.errors import InvalidInput
from farm.presentation.text import past_moment, plural
from farm.wire.documents.results.speedups import SpeedupView

#: Rows named with their cells below a table.
_ROWS_NUMBERED = 4


class Order(StrEnum):
    """The order of candidates within a table."""

    TIME = "time"
    SPEEDUP = "speedup"


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
    baseline: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Against the cell with these words in its label, planned or not."),
    ] = None,
    candidate: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only candidates with these words in their label.")
    ] = None,
    part: MatrixName = None,
    mine: MineOfMatrices = False,
    sort: Annotated[
        Order | None, typer.Option(help="Order of rows: the shortest time, or the best speedup, first.")
    ] = None,
    gate: GateOption = None,
    since: Since = None,
    at: At = None,
    by: ByOption = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most N rows.")] = None,
    as_json: Json = False,
) -> None:
    """Compare every candidate with its baseline, by device.

    Without a matrix, each pair is compared over its newest matrices of equal versions: file, program, build
    and controls; 20 of them at most.

    Example: farm speedups 3 --device phone-1
    """
    matrix_id = selected_matrix(number, matrix)
    begin, known_at = past_moment(since, option="--since"), past_moment(at, option="--at")
    for option, value in (("--since", begin), ("--name", part), ("--mine", mine or None)):
        if matrix_id is not None and value is not None:
            raise InvalidInput(f"{option} goes with all matrices, not with one", hint="leave one of them out")
    if gate is not None and limit is not None:
        raise InvalidInput("--gate judges all rows, --limit leaves some out", hint="leave one of them out")
    if begin is not None and known_at is not None and begin > known_at:
        raise InvalidInput("--since is later than --at", hint="give an earlier --since")
    if by is not None:
        flags = (across_controls or None, pivot or None, mine or None, limit)
        check_by(by, others=(matrix_id, device, gate, part, *flags))
        with connect() as farm:
            groups = farm.group_speedups(
                by, model=model, baseline=baseline, candidate=candidate, since=begin, at=known_at
            )
        draw = partial(group_tables, is_filtered=any((model, baseline, candidate, since, at)))
        show(in_order(groups, sort), draw, as_json=as_json)
        return
    with connect() as farm:
        views = farm.speedups(
            matrix_id=matrix_id,
            device=device,
            model=model,
            baseline=baseline,
            candidate=candidate,
            name=part,
            mine=mine,
            across_controls=across_controls,
            since=begin,
            at=known_at,
            limit=None if sort else limit,
        )
        if limit is not None and sort is not None:
            views = iter(in_order(list(views), sort)[:limit])
        whole = None
        if gate is not None:
            views = iter(compared := list(views))
            if matrix_id is not None and not any((device, model, baseline, candidate)):
                # Cells that cannot run are asked, too.
                whole = farm.matrix(matrix_id)
        if as_json:
            print_json_list(views if sort is None else in_order(list(views), sort))
        else:
            is_filtered = any((device, model, baseline, candidate, part, mine, since, at))
            print_speedups(views, pivot=pivot, order=sort, is_filtered=is_filtered)
    if across_controls and not as_json:
        print_notice(
            "Runs of different control levels are included: the difference may be caused by the controls."
        )
    if gate is not None:
        judged = judge(gate, compared, whole)
        print_gate(gate, judged)
        raise typer.Exit(judged.outcome.exit_code)


class _Timed(Protocol):
    """A comparison with a time and a speedup."""

    @property
    def candidate_ns(self) -> float | None: ...
    @property
    def speedup(self) -> float | None: ...


TimedT = TypeVar("TimedT", bound=_Timed)


def in_order(views: Sequence[TimedT], order: Order | None) -> list[TimedT]:
    """Return comparisons in an order, those without a time last; None: as they are."""
    match order:
        case None:
            return [*views]
        case Order.TIME:
            return sorted(views, key=lambda view: view.candidate_ns or math.inf)
        case Order.SPEEDUP:
            return sorted(views, key=lambda view: -(view.speedup or 0.0))


def print_speedups(
    comparisons: Iterable[SpeedupView],
    *,
    pivot: bool = False,
    order: Order | None = None,
    is_filtered: bool = False,
) -> None:
    """Print the table to stdout, and hints to stderr; without an order, rows are as in their matrix."""
    views = first_rows(
        comparisons, where_all_are="--device and --model select fewer, `farm speedups --json` prints all."
    )
    if not views:
        print_notice(nothing_text(is_filtered=is_filtered))
        return
    console = out()
    draw = pivot_tables if pivot else speedup_table
    console.print(
        draw(in_order(views, order), width=console.width, as_given=order is not None), soft_wrap=True
    )
    print_notice(f"Details: {farm_command()} explain cell {_numbered_examples(views)}")


def _numbered_examples(views: Sequence[SpeedupView]) -> str:
    """Return `12 (int8-core lite) or 13 (float16 lite)`, for the first rows."""
    names = [f"{view.cell_id} ({view.candidate})" for view in views[:_ROWS_NUMBERED]]
    more = len(views) - len(names)
    return " or ".join(names) + (
        f"; `farm speedups --json` lists {plural(more, 'more cell')}" if more else ""
    )
