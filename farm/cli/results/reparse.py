"""`farm reparse`: parse stored output again with the current adapters."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.options import Json, MatrixArgument, MatrixOption, selected_matrix
from farm.cli.shell.output import print_data, print_json, print_notice
from farm.cli.shell.tables import Listing, name, prose
from farm.client.farm_client import FarmClient
from farm.core.results.reparse import ReparseChange, ReparseKind
from farm.presentation.text import EMPTY_CELL, plural, seconds
from farm.wire.documents.results.results import ReparsePage, ReparseRequest

#: The attempts with a different reading.
reparse_table = Listing[ReparseChange](
    name("attempt", lambda view: view.attempt_id),
    name("matrix", lambda view: view.matrix_id),
    name("harness", lambda view: view.harness),
    prose("parser", lambda view: f"{view.from_version or EMPTY_CELL} to {view.to_version}"),
    prose("result", lambda view: view.kind),
    prose("change", lambda view: view.what),
)


def reparse_text(pages: Sequence[ReparsePage], *, is_dry_run: bool) -> Iterator[str]:
    """Return the counts of changes, and hints."""
    counts = Counter(change.kind for page in pages for change in page.changes)
    examined = sum(page.examined for page in pages)
    up_to_date = sum(page.up_to_date for page in pages)
    unchanged = examined - sum(counts.values())
    yield f"{plural(examined, 'attempt')} parsed again: {unchanged} unchanged; {up_to_date} were up to date."
    if expired := sum(page.expired for page in pages):
        yield f"{plural(expired, 'attempt')} not parsed again: their output expired."
    would = "would be " if is_dry_run else ""
    for kind, count in counts.items():
        yield f"{count} {would}{_CHANGE_TEXT[kind]}"
    if is_dry_run and counts:
        yield "Nothing was changed. `--yes` applies the changes."
    if counts[ReparseKind.READABLE]:
        yield "hint: `farm matrix rerun ID --failed` measures cells without a valid measurement again"


_CHANGE_TEXT = {
    ReparseKind.CHANGED: "changed: the new reading is used, the previous one is kept",
    ReparseKind.WITHDRAWN: "withdrawn: no time can be parsed any more; not used in comparisons",
    ReparseKind.READABLE: "parsed for a failed job: not used, as its outcome stays",
    ReparseKind.BROKEN: "not parsed: the adapter failed, which is a bug of the farm",
}


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
        print_json({"dry_run": is_dry_run, "changes": changes})
    elif changes:
        print_data(reparse_table(changes))
    for line in reparse_text(pages, is_dry_run=is_dry_run):
        print_notice(line)


def _pages(farm: FarmClient, request: ReparseRequest) -> Iterator[ReparsePage]:
    after: int | None = 0
    while after is not None:
        page = farm.reparse(request.model_copy(update={"after": after}))
        yield page
        after = page.next_after
