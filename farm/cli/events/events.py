"""`farm events`: what happened, and what happens."""

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

#: How long the farm may hold a call.
_WAIT_S = 20.0
#: A farm that is restarted is asked again as often as this, for as long as that.
_RETRY_S = 1.0
AWAY_TIMEOUT_S = 180.0
#: The newest of them are shown; a follower reads on in pages of this size.
_LIMIT = 50
_MAX_LIMIT = 1000


def events(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens from now on; Ctrl-C ends it.")
    ] = False,
    subject: Annotated[
        str | None,
        typer.Option(metavar="KIND:ID", help="Of one thing: device:pixel-8, job:17, host:bench-1, matrix:3."),
    ] = None,
    actor: Annotated[
        str | None, typer.Option(metavar="WHO", help="What one did: ann, agent:bench-1, farm.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Of one kind, as docs/events.md lists them.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Of the last 90s, 30m, 2h, 7d only.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=_MAX_LIMIT, metavar="N", help="The newest so many.")
    ] = _LIMIT,
    as_json: JsonLines = False,
) -> None:
    """Show what happened, the newest last: who did what to which phone, job or host, and why.

    Example: farm events --follow --subject device:pixel-8
    """
    from farm.cli.shell.duration import seconds

    asked: dict[str, object] = {"subject": subject, "actor": actor, "kind": kind, "limit": limit}
    with connect() as farm:
        page = farm.events({**asked, "since_s": None if since is None else seconds(since)})
        tell = _printer(as_json=as_json)
        for event in page.events:
            tell(event)
        _print_count(page, limit, is_followed=follow)
        if follow:
            _follow(farm, page.next, {**asked, "limit": _MAX_LIMIT}, tell)


def _print_count(page: "EventPage", limit: int, *, is_followed: bool) -> None:
    if len(page.events) == limit:
        print_notice(f"These are the newest {limit}; --limit shows more, up to {_MAX_LIMIT}.")
    elif not page.events and not is_followed:
        print_notice("Nothing of that happened. `farm events` without options shows everything.")


def _printer(*, as_json: bool) -> "Callable[[LoggedEventView], None]":
    from farm.cli.events.event_lines import EventLines

    lines = EventLines()

    def tell(event: "LoggedEventView") -> None:
        if as_json:
            print_json_line(event.model_dump(mode="json"))
        else:
            out().print(lines.line(event), markup=False, soft_wrap=True)

    return tell


def _follow(
    farm: "FarmClient", after: int, asked: dict[str, object], tell: "Callable[[LoggedEventView], None]"
) -> None:
    """Print what comes; none twice and none left out, also when the farm was away.

    Raises:
        typer.Exit: the person pressed Ctrl-C.
        FarmFault: the farm did not come back.
    """
    try:
        while True:
            page = _retry_while_away(partial(farm.events, asked, after=after, wait_s=_WAIT_S))
            for event in page.events:
                tell(event)
            after = page.next
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _retry_while_away(look: "Callable[[], EventPage]") -> "EventPage":
    began_s, has_said = time.monotonic(), False
    while True:
        try:
            return look()
        except FarmFault as error:
            if time.monotonic() - began_s > AWAY_TIMEOUT_S:
                raise
            if not has_said:
                print_notice(f"{error.message}; trying again")
                has_said = True
            time.sleep(_RETRY_S)
