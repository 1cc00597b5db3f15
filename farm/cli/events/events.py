"""`farm events`: show and follow the event log."""

import time
from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from typing import Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.options import JsonLines
from farm.cli.shell.output import print_data, print_json_line, print_notice
from farm.client.connection import QueryValue
from farm.client.farm_client import FarmClient
from farm.core.errors import FarmFault, InvalidInput
from farm.presentation.text import past_seconds, transition_text
from farm.wire.documents.operations import EventPage, LoggedEvent

_WHO_WIDTH = 14
#: Time the farm may wait for new events before it answers.
_WAIT_S = 20.0
#: Interval and time-out of retries while the farm is restarted.
_RETRY_S = 1.0
AWAY_TIMEOUT_S = 180.0
#: Events shown by default, and the page size when following.
_LIMIT = 50
_MAX_LIMIT = 1000


class EventLines:
    """Formats events in the local time zone, with the date where it differs from the previous line."""

    def __init__(self, today: date | None = None) -> None:
        """`today` is the date that is not printed; default: the current date."""
        self._date = today or datetime.now().astimezone().date()

    def line(self, event: LoggedEvent) -> str:
        """Return `18:40:12  ann  device pixel-8 cordoned: active → cordoned (swollen battery)`."""
        return (
            f"{self._when(event.at)}  {event.actor.removeprefix('user:'):{_WHO_WIDTH}}  {event_text(event)}"
        )

    def _when(self, at: datetime) -> str:
        local = at.astimezone()
        if local.date() == self._date:
            return f"{local:%H:%M:%S}"
        self._date = local.date()
        return f"{local:%Y-%m-%d %H:%M:%S}"


def event_text(event: LoggedEvent) -> str:
    """Return the subject, its change and the cause."""
    subject = f"{event.subject.replace('_', ' ')} {event.device_label or event.subject_id}"
    change = event.kind.removeprefix(f"{event.subject}_").replace("_", " ")
    cause = f" ({event.cause})" if event.cause else ""
    return f"{subject} {change}{transition_text(event)}{cause}"


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
        str | None, typer.Option(metavar="DATE", help="Only what is since: 2026-03-01, 30m, 2h or 7d.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=_MAX_LIMIT, metavar="N", help="Number of events, the newest ones.")
    ] = _LIMIT,
    all_events: Annotated[
        bool, typer.Option("--all", help="All events instead of the newest, oldest first.")
    ] = False,
    as_json: JsonLines = False,
) -> None:
    """Show events, newest last: time, actor, change of a device, job or host, and cause.

    `farm events --all --json > events.jsonl` exports the log.

    Example: farm events --follow --subject device:pixel-8
    """
    since_s = past_seconds(since, option="--since")
    query: dict[str, QueryValue] = {"subject": subject, "actor": actor, "kind": kind, "limit": limit}
    if all_events:
        if follow:
            raise InvalidInput("--all ends with the newest event", hint="leave --all or --follow out")
        _export(query | {"since_s": since_s}, _printer(as_json=as_json))
        return
    with connect() as farm:
        page = farm.events({**query, "since_s": since_s})
        print_event = _printer(as_json=as_json)
        for event in page.events:
            print_event(event)
        _print_count(page, limit, is_followed=follow)
        if follow:
            _follow(farm, page.next, {**query, "limit": _MAX_LIMIT}, print_event)


def _export(query: dict[str, QueryValue], print_event: Callable[[LoggedEvent], None]) -> None:
    """Print all events, page by page."""
    with connect() as farm:
        page = farm.events({**query, "limit": _MAX_LIMIT}, after=0)
        while page.events:
            for event in page.events:
                print_event(event)
            page = farm.events({**query, "limit": _MAX_LIMIT}, after=page.next)


def _print_count(page: EventPage, limit: int, *, is_followed: bool) -> None:
    if len(page.events) == limit:
        print_notice(f"Only the newest {limit} are shown; --limit shows up to {_MAX_LIMIT}.")
    elif not page.events and not is_followed:
        print_notice("No such events. `farm events` without options shows all kinds.")


def _printer(*, as_json: bool) -> Callable[[LoggedEvent], None]:
    lines = EventLines()
    return print_json_line if as_json else lambda event: print_data(lines.line(event))


def _follow(
    farm: FarmClient, after: int, query: dict[str, QueryValue], print_event: Callable[[LoggedEvent], None]
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


def _retry_while_away(fetch: Callable[[], EventPage]) -> EventPage:
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
