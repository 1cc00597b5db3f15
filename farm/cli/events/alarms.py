"""`farm alarms`: what somebody should see to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.identity import operator_request
from farm.cli.shell.output import Json, print_json, print_notice, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from farm.client.farm_client import FarmClient
    from farm.wire.documents.alarms import AlarmView

app = typer.Typer(help="What somebody should see to, because the farm cannot mend it by itself.")


@app.callback(invoke_without_command=True)
def alarms(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="The newest, cleared ones too.")] = False,
    as_json: Json = False,
) -> None:
    """List what somebody should see to: phones and hosts that are silent or slow, work that ends.

    Example: farm alarms --all
    """
    if context.invoked_subcommand is not None:
        return
    with connect() as farm:
        show(farm.alarms(cleared=every), alarm_table, as_json=as_json)


@app.command()
def clear(
    alarm: Annotated[int, typer.Argument(metavar="ID", help="Its number.")],
    reason: Annotated[str, typer.Option(help="What was done; kept with the event.")],
    as_json: Json = False,
) -> None:
    """Say that an alarm is seen to. One that lasts all the same is raised again after a day.

    Example: farm alarms clear 7 --reason "a new cable"
    """
    from farm.wire.documents.alarms import ClearRequest

    with connect() as farm:
        view = farm.clear_alarm(alarm, operator_request(ClearRequest, reason=reason))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        print_notice(f"Alarm {view.alarm_id} is cleared by {view.cleared_by}.")


def alarm_table(found: Sequence["AlarmView"]) -> "RenderableType":
    """One line an alarm, with what to do about it below."""
    from rich.text import Text

    from farm.cli.shell.formatting import local_time_text
    from farm.cli.shell.tables import add_row, new_table

    if not found:
        return Text("No alarm is open.")
    table = new_table(names=("alarm", "what", "since"), prose=("message",))
    for view in found:
        said = f"{view.message}\nhint: {view.hint}"
        if view.cleared_at is not None:
            said = f"{view.message}\ncleared {local_time_text(view.cleared_at)} by {view.cleared_by}"
        add_row(table, str(view.alarm_id), view.kind, local_time_text(view.raised_at), said)
    return table


def warn_of_alarms(farm: "FarmClient") -> None:
    """One line on stderr where alarms are open."""
    from farm.cli.shell.formatting import plural
    from farm.core.errors import FarmError

    try:
        found = farm.alarms()
    except FarmError:
        # What was asked for is printed already; a farm of an older release has no alarms.
        return
    if found:
        are = "is" if len(found) == 1 else "are"
        print_notice(f"{plural(len(found), 'alarm')} {are} open: `farm alarms`.")
