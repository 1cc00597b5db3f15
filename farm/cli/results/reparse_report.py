"""What reading evidence again changed, as a table and in words."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table

from farm.cli.shell.formatting import EMPTY_CELL, plural
from farm.cli.shell.tables import add_row, new_table
from farm.core.results.reparse import ReparseKind
from farm.wire.documents.results.reparse import ReparseChangeView, ReparsePage


def reparse_table(changes: Sequence[ReparseChangeView]) -> Table:
    """Each attempt that is read otherwise."""
    table = new_table(names=("attempt", "matrix", "harness"), words=("parser", "now"), prose=("what",))
    for view in changes:
        before = EMPTY_CELL if view.from_version is None else str(view.from_version)
        names = (str(view.attempt_id), str(view.matrix_id), view.harness)
        add_row(table, *names, f"{before} to {view.to_version}", view.kind, view.what)
    return table


def reparse_text(pages: Sequence[ReparsePage], *, only_told: bool) -> Iterator[str]:
    """How many, and what is left to a person."""
    counts = Counter(change.kind for page in pages for change in page.changes)
    examined = sum(page.examined for page in pages)
    up_to_date = sum(page.up_to_date for page in pages)
    alike = examined - sum(counts.values())
    yield f"{plural(examined, 'attempt')} read again: {alike} alike; {up_to_date} were up to date."
    if expired := sum(page.expired for page in pages):
        yield f"{plural(expired, 'attempt')} stay as they were read: their output expired."
    would = "would be " if only_told else ""
    for kind, count in counts.items():
        yield f"{count} {would}{_CHANGE_TEXT[kind]}"
    if only_told and counts:
        yield "Nothing was changed. `--yes` does it."
    if counts[ReparseKind.READABLE]:
        yield "hint: `farm matrix rerun ID --failed` measures anew what ended without a measurement"


_CHANGE_TEXT = {
    ReparseKind.CHANGED: "changed: the new reading counts, the old one is kept",
    ReparseKind.WITHDRAWN: "withdrawn: no time can be read any more, and they enter no comparison",
    ReparseKind.READABLE: "kept beside a job that failed, and counted nowhere: its outcome stays",
    ReparseKind.BROKEN: "not read: the adapter fails on them, which is a fault of the farm's",
}
