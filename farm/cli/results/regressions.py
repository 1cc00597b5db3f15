"""`farm regressions`: what became slower, since when, because of what; and what people say of it."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.shell.address import connect
from farm.cli.shell.options import Json, MatrixName, MineOfMatrices
from farm.cli.shell.output import out, print_data, print_done, print_json, print_json_list, print_notice
from farm.cli.shell.tables import Listing, name, number, sections, sheet
from farm.core.errors import InvalidInput
from farm.core.results.history.change_text import percent_text
from farm.core.results.history.recorded_change import ChangeCause, ChangeState
from farm.presentation.changes import (
    change_fields,
    change_lines,
    series_matrices,
    series_speedups,
    series_times,
)
from farm.presentation.labels import device_name
from farm.presentation.text import past_moment
from farm.wire.documents.results.changes import (
    ChangeDetail,
    ChangedSeriesView,
    ChangeStateRequest,
    ChangeView,
)

app = typer.Typer()
#: Changes of one screen.
_SCREEN = 20
ChangeNumber = Annotated[
    int, typer.Argument(metavar="ID", help="The change's number, as in `farm regressions`.")
]


@app.callback(invoke_without_command=True)
def regressions(
    context: typer.Context,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Only those told since: 2026-03-01, 12h, 30d or 1y."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="Only those on this device, by id or label.")] = None,
    model: Annotated[str | None, typer.Option(help="Only those of this model.")] = None,
    cause: Annotated[ChangeCause | None, typer.Option(help="Only those with this cause.")] = None,
    state: Annotated[ChangeState | None, typer.Option(help="Only those that are judged so.")] = None,
    part: MatrixName = None,
    mine: MineOfMatrices = False,
    every: Annotated[
        bool, typer.Option("--all", help="Improvements, too, and what is not shown any more.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N, the newest.")] = _SCREEN,
    as_json: Json = False,
) -> None:
    """List what became slower: since when, by how much, on how many devices, and because of what.

    The farm searches for changes whenever measurements are complete; each raises one alarm.

    Example: farm regressions --since 1y
    """
    if context.invoked_subcommand is not None:
        return
    begin = past_moment(since, option="--since")
    with connect() as farm:
        listed = list(
            islice(
                farm.changes(
                    since=begin,
                    device=device,
                    model=model,
                    cause=cause,
                    state=state,
                    name=part,
                    mine=mine,
                    every=every,
                    limit=limit + 1,
                ),
                limit + 1,
            )
        )
    shown = listed[:limit]
    if as_json:
        print_json_list(shown)
        return
    if not shown:
        narrower = any((since, device, model, cause, state, part, mine))
        what = "change" if every else "regression"
        if narrower:
            print_notice(f"No {what} matches.")
        else:
            print_notice(f"No {what} was found; the newest sessions are searched within minutes.")
        return
    print_data(_list_text(shown))
    if len(listed) > limit:
        print_notice(f"Only the newest {limit} are shown: --limit {2 * limit} shows more.")


def _list_text(changes: Sequence[ChangeView]) -> Text:
    head, *lines = change_lines(changes, width=out().width)
    return Text("\n").join([Text(head, style="bold"), *map(Text, lines)])


@app.command()
def show(change: ChangeNumber, as_json: Json = False) -> None:
    """Show the evidence of a change: each series before and since, and the versions that differ.

    Example: farm regressions show 7
    """
    with connect() as farm:
        detail = farm.change(change)
    if as_json:
        print_json(detail)
        return
    print_data(_detail_text(detail))
    shown = detail.evidence
    if len(shown) < detail.change.series:
        print_notice(f"The first {len(shown)} of {detail.change.series} series are listed.")
    if shown:
        print_notice(f"More: {_trend_command(detail)}, farm explain cell ID")


def _detail_text(detail: ChangeDetail) -> RenderableType:
    head = Text(f"Change {detail.change.change_id}", style="bold")
    fields = sheet(change_fields(detail))
    return sections(Group(head, fields), _evidence(detail.evidence) if detail.evidence else None)


_evidence = Listing[ChangedSeriesView](
    name("device", device_name),
    name("series", lambda view: view.label if view.baseline is None else f"{view.label} vs {view.baseline}"),
    name("time", series_times),
    name("speedup", series_speedups, is_shown=lambda rows: any(row.before_speedup for row in rows)),
    number("change", lambda view: "-" if view.delta is None else percent_text(view.delta)),
    number("sessions", lambda view: f"{view.before_sessions}, {view.after_sessions}"),
    name("matrices", series_matrices),
)


def _trend_command(detail: ChangeDetail) -> str:
    """Return the command that shows the trend of the first series."""
    first = detail.evidence[0]
    model = [first.model] if first.model else []
    return " ".join(["farm history show", *model, "--device", device_name(first)])


@app.command("set")
def set_state(
    change: ChangeNumber,
    state: Annotated[ChangeState, typer.Argument(help="What it is.")],
    reason: Annotated[str, typer.Option(help="Why; kept with the change.")] = "",
    as_json: Json = False,
) -> None:
    """Say what a change is, for a reason: acknowledged, expected, fixed, invalid or infrastructure.

    Author and reason are kept for ever; the alarm of the change is cleared.

    Example: farm regressions set 7 expected --reason "float16 is off on purpose"
    """
    if not reason.strip():
        raise InvalidInput("what is said of a change needs a reason", hint='--reason "why it is so"')
    with connect() as farm:
        view = farm.set_change_state(change, ChangeStateRequest(state=state, reason=reason.strip()))
    print_done(view, f"Change {view.change_id} is {view.state}.", as_json=as_json)
