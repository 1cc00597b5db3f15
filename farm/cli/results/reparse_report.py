"""The results of `farm reparse` as a table and as text."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table

from farm.cli.shell.formatting import EMPTY_CELL, plural
from farm.cli.shell.tables import add_row, new_table
from farm.core.results.reparse import ReparseKind
from farm.wire.documents.results.reparse import ReparseChangeView, ReparsePage


def reparse_table(changes: Sequence[ReparseChangeView]) -> Table:
    """Return a table of attempts with a different reading."""
    table = new_table(names=("attempt", "matrix", "harness"), words=("parser", "result"), prose=("change",))
    for view in changes:
        before = EMPTY_CELL if view.from_version is None else str(view.from_version)
        names = (str(view.attempt_id), str(view.matrix_id), view.harness)
        add_row(table, *names, f"{before} to {view.to_version}", view.kind, view.what)
    return table


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
