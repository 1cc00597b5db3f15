"""`farm alarms`: list and clear alarms."""

import re
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from farm.cli.shell.address import connect, show_view
from farm.cli.shell.identity import operator_request
from farm.cli.shell.options import Json, Since
from farm.cli.shell.output import print_done, print_notice
from farm.cli.shell.tables import Listing, name, prose
from farm.client.farm_client import FarmClient
from farm.core.errors import FarmError
from farm.presentation.text import local_time_text, past_moment, plural
from farm.wire.documents.operations import AlarmView, ClearRequest

app = typer.Typer()


@app.callback(invoke_without_command=True)
def alarms(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="The newest alarms, including cleared ones.")] = False,
    since: Since = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=1000, metavar="N", help="At most N; with --all 200.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the open alarms: devices and hosts that are silent or slow, work that has stalled.

    Example: farm alarms --all
    """
    if context.invoked_subcommand is not None:
        return
    begin = past_moment(since, option="--since")
    show_view(lambda farm: farm.alarms(cleared=every, since=begin, limit=limit), alarm_table, as_json=as_json)


@app.command()
def clear(
    alarm: Annotated[int, typer.Argument(metavar="ID", help="Number of the alarm.")],
    reason: Annotated[str, typer.Option(help="What was done; kept with the event.")],
    as_json: Json = False,
) -> None:
    """Clear an alarm. If its cause still exists after a day, it is raised again.

    Example: farm alarms clear 7 --reason "a new cable"
    """
    with connect() as farm:
        view = farm.clear_alarm(alarm, operator_request(ClearRequest, reason=reason))
    print_done(view, f"Alarm {view.alarm_id} cleared by {view.cleared_by}.", as_json=as_json)


def alarm_table(alarms: Sequence[AlarmView]) -> RenderableType:
    """Return a table of alarms, each with a hint."""
    return _table(alarms) if alarms else Text("No alarm is open.")


_table = Listing[AlarmView](
    name("alarm", lambda view: view.alarm_id),
    name("what", lambda view: view.kind),
    name("since", lambda view: local_time_text(view.raised_at)),
    prose("message", lambda view: _with_label(view, f"{view.message}\n{_next_text(view)}")),
)


def _with_label(view: AlarmView, text: str) -> str:
    """Name the device by its label: the text may be of a time when it had none, or another."""
    if view.device_id is None or view.device_label is None:
        return text
    return re.sub(rf"(?<![\w-]){re.escape(view.device_id)}(?![\w-])", lambda _: str(view.device_label), text)


def _next_text(view: AlarmView) -> str:
    if view.cleared_at is None:
        return f"hint: {view.hint}"
    return f"cleared {local_time_text(view.cleared_at)} by {view.cleared_by}"


def warn_of_alarms(farm: FarmClient) -> None:
    """One line on stderr where alarms are open."""
    try:
        open_alarms = farm.alarms()
    except FarmError:
        # The requested output is printed already; a farm of an older release has no alarms.
        return
    if open_alarms:
        are = "is" if len(open_alarms) == 1 else "are"
        print_notice(f"{plural(len(open_alarms), 'alarm')} {are} open: `farm alarms`.")
