"""`farm reparse`: parse stored output again with the current adapters."""

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
    harness: Annotated[str | None, typer.Option(metavar="NAME", help="Only this harness.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Only attempts that ended within this time: 12h, 30d.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Apply the changes; the default without a terminal.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Parse stored output again with adapters that are newer than those used before.

    On a terminal it only shows the changes unless --yes is given. A new reading replaces the previous one,
    which is kept. Outcomes of jobs do not change. The command can be interrupted at any time.

    Example: farm reparse --harness benchmark_model --since 30d
    """
    from farm.cli.results.reparse_report import reparse_table, reparse_text
    from farm.cli.shell.duration import seconds
    from farm.wire.documents.results.reparse import ReparseRequest

    is_dry_run = dry_run or (sys.stdin.isatty() and not yes)
    request = ReparseRequest(
        matrix_id=selected_matrix(number, matrix),
        harness=harness,
        since=None if since is None else datetime.now(UTC) - timedelta(seconds=seconds(since)),
        dry_run=is_dry_run,
    )
    with connect() as farm:
        pages = list(_pages(farm, request))
    changes = [change for page in pages for change in page.changes]
    if as_json:
        print_json({"dry_run": is_dry_run, "changes": [change.model_dump(mode="json") for change in changes]})
    elif changes:
        out().print(reparse_table(changes))
    for line in reparse_text(pages, is_dry_run=is_dry_run):
        print_notice(line)


def _pages(farm: "FarmClient", request: "ReparseRequest") -> Iterator["ReparsePage"]:
    after: int | None = 0
    while after is not None:
        page = farm.reparse(request.model_copy(update={"after": after}))
        yield page
        after = page.next_after
