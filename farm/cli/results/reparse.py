"""`farm reparse`: what the present adapters make of the output that is kept."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.matrices.argument import MatrixArgument, MatrixOption, selected_matrix
from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json, print_notice

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.results.reparse import ReparsePage, ReparseRequest


def reparse(
    number: MatrixArgument = None,
    matrix: MatrixOption = None,
    harness: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this harness.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Only what ended within that time: 12h, 30d.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Change it; a script need not say so.")] = False,
    as_json: Json = False,
) -> None:
    """Read kept output again by the present adapters, where they are newer than those that read it.

    On a terminal it says what would change, and changes nothing without --yes. Another reading counts in
    the place of the older one, which is kept; no job's outcome changes. It can be ended at any time.

    Example: farm reparse --harness benchmark_model --since 30d
    """
    from farm.cli.results.reparse_report import reparse_table, reparse_text
    from farm.cli.shell.duration import seconds
    from farm.wire.documents.results.reparse import ReparseRequest

    only_told = dry_run or (sys.stdin.isatty() and not yes)
    request = ReparseRequest(
        matrix_id=selected_matrix(number, matrix),
        harness=harness,
        since=None if since is None else datetime.now(UTC) - timedelta(seconds=seconds(since)),
        dry_run=only_told,
    )
    with connect() as farm:
        pages = list(_pages(farm, request))
    changes = [change for page in pages for change in page.changes]
    if as_json:
        print_json({"dry_run": only_told, "changes": [change.model_dump(mode="json") for change in changes]})
    elif changes:
        out().print(reparse_table(changes))
    for line in reparse_text(pages, only_told=only_told):
        print_notice(line)


def _pages(farm: "FarmClient", request: "ReparseRequest") -> Iterator["ReparsePage"]:
    after: int | None = 0
    while after is not None:
        page = farm.reparse(request.model_copy(update={"after": after}))
        yield page
        after = page.next_after
