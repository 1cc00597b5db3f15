"""`farm alarms`: list and clear alarms."""

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

app = typer.Typer(
    help="Alarms: problems that need an operator because the farm cannot fix them automatically."
)


@app.callback(invoke_without_command=True)
def alarms(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="The newest alarms, including cleared ones.")] = False,
    as_json: Json = False,
) -> None:
    """List the open alarms: devices and hosts that are silent or slow, work that has stalled.

    Example: farm alarms --all
    """
    if context.invoked_subcommand is not None:
        return
    with connect() as farm:
        show(farm.alarms(cleared=every), alarm_table, as_json=as_json)


@app.command()
def clear(
    alarm: Annotated[int, typer.Argument(metavar="ID", help="Number of the alarm.")],
    reason: Annotated[str, typer.Option(help="What was done; kept with the event.")],
    as_json: Json = False,
) -> None:
    """Clear an alarm. If its cause still exists after a day, it is raised again.

    Example: farm alarms clear 7 --reason "a new cable"
    """
    from farm.wire.documents.alarms import ClearRequest

    with connect() as farm:
        view = farm.clear_alarm(alarm, operator_request(ClearRequest, reason=reason))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        print_notice(f"Alarm {view.alarm_id} cleared by {view.cleared_by}.")


def alarm_table(alarms: Sequence["AlarmView"]) -> "RenderableType":
    """Return a table of alarms, each with a hint."""
    from rich.text import Text

    from farm.cli.shell.formatting import local_time_text
    from farm.cli.shell.tables import add_row, new_table

    if not alarms:
        return Text("No alarm is open.")
    table = new_table(names=("alarm", "what", "since"), prose=("message",))
    for view in alarms:
        message = f"{view.message}\nhint: {view.hint}"
        if view.cleared_at is not None:
            message = f"{view.message}\ncleared {local_time_text(view.cleared_at)} by {view.cleared_by}"
        add_row(table, str(view.alarm_id), view.kind, local_time_text(view.raised_at), message)
    return table


def warn_of_alarms(farm: "FarmClient") -> None:
    """One line on stderr where alarms are open."""
    from farm.cli.shell.formatting import plural
    from farm.core.errors import FarmError

    try:
        open_alarms = farm.alarms()
    except FarmError:
        # The requested output is printed already; a farm of an older release has no alarms.
        return
    if open_alarms:
        are = "is" if len(open_alarms) == 1 else "are"
        print_notice(f"{plural(len(open_alarms), 'alarm')} {are} open: `farm alarms`.")
