"""`farm events`: show and follow the event log."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.output import JsonLines, out, print_json_line, print_notice
from farm.core.errors import FarmFault

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.events import EventPage, LoggedEventView

#: How long the farm may wait for new events before it answers.
_WAIT_S = 20.0
#: Interval and time-out of retries while the farm is restarted.
_RETRY_S = 1.0
AWAY_TIMEOUT_S = 180.0
#: Events shown by default, and the page size when following.
_LIMIT = 50
_MAX_LIMIT = 1000


def events(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new events as they occur, until Ctrl-C.")
    ] = False,
    subject: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:ID", help="Events of one subject: device:pixel-8, job:17, host:bench-1, matrix:3."
        ),
    ] = None,
    actor: Annotated[
        str | None, typer.Option(metavar="WHO", help="Events of one actor: ann, agent:bench-1, farm.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Events of one kind; docs/events.md lists the kinds.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Events of the last 90s, 30m, 2h, 7d.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=_MAX_LIMIT, metavar="N", help="Number of events, the newest ones.")
    ] = _LIMIT,
    as_json: JsonLines = False,
) -> None:
    """Show events, newest last: time, actor, change of a device, job or host, and cause.

    Example: farm events --follow --subject device:pixel-8
    """
    from farm.cli.shell.duration import seconds

    query: dict[str, object] = {"subject": subject, "actor": actor, "kind": kind, "limit": limit}
    with connect() as farm:
        page = farm.events({**query, "since_s": None if since is None else seconds(since)})
        print_event = _printer(as_json=as_json)
        for event in page.events:
            print_event(event)
        _print_count(page, limit, is_followed=follow)
        if follow:
            _follow(farm, page.next, {**query, "limit": _MAX_LIMIT}, print_event)


def _print_count(page: "EventPage", limit: int, *, is_followed: bool) -> None:
    if len(page.events) == limit:
        print_notice(f"Only the newest {limit} are shown; --limit shows up to {_MAX_LIMIT}.")
    elif not page.events and not is_followed:
        print_notice("No such events. `farm events` without options shows all kinds.")


def _printer(*, as_json: bool) -> "Callable[[LoggedEventView], None]":
    from farm.cli.events.event_lines import EventLines

    lines = EventLines()

    def print_event(event: "LoggedEventView") -> None:
        if as_json:
            print_json_line(event.model_dump(mode="json"))
        else:
            out().print(lines.line(event), markup=False, soft_wrap=True)

    return print_event


def _follow(
    farm: "FarmClient", after: int, query: dict[str, object], print_event: "Callable[[LoggedEventView], None]"
) -> None:
    """Print new events, each exactly once, even if the farm was away in between.

    Raises:
        typer.Exit: the user pressed Ctrl-C.
        FarmFault: the farm did not come back.
    """
    try:
        while True:
            page = _retry_while_away(partial(farm.events, query, after=after, wait_s=_WAIT_S))
            for event in page.events:
                print_event(event)
            after = page.next
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _retry_while_away(fetch: "Callable[[], EventPage]") -> "EventPage":
    began_s, has_printed = time.monotonic(), False
    while True:
        try:
            return fetch()
        except FarmFault as error:
            if time.monotonic() - began_s > AWAY_TIMEOUT_S:
                raise
            if not has_printed:
                print_notice(f"{error.message}; trying again")
                has_printed = True
            time.sleep(_RETRY_S)
