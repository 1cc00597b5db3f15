"""What reading evidence again changed, as a table and in words."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table

from farm.cli.shell.formatting import NOTHING, plural
from farm.cli.shell.tables import add_row, listing
from farm.core.results.reparse import RereadKind
from farm.wire.documents.results.reparse import RereadPage, RereadView


def reparse_table(changes: Sequence[RereadView]) -> Table:
    """Each attempt that is read otherwise."""
    table = listing(names=("attempt", "matrix", "harness"), words=("parser", "now"), prose=("what",))
    for view in changes:
        before = NOTHING if view.from_version is None else str(view.from_version)
        names = (str(view.attempt_id), str(view.matrix_id), view.harness)
        add_row(table, *names, f"{before} to {view.to_version}", view.kind, view.what)
    return table


def reparse_text(pages: Sequence[RereadPage], *, only_told: bool) -> Iterator[str]:
    """How many, and what is left to a person."""
    counts = Counter(change.kind for page in pages for change in page.changes)
    looked_at = sum(page.looked_at for page in pages)
    up_to_date = sum(page.up_to_date for page in pages)
    alike = looked_at - sum(counts.values())
    yield f"{plural(looked_at, 'attempt')} read again: {alike} alike; {up_to_date} were up to date."
    if expired := sum(page.expired for page in pages):
        yield f"{plural(expired, 'attempt')} stay as they were read: their output expired."
    would = "would be " if only_told else ""
    for kind, count in counts.items():
        yield f"{count} {would}{_WORDS[kind]}"
    if only_told and counts:
        yield "Nothing was changed. `--yes` does it."
    if counts[RereadKind.READABLE]:
        yield "hint: `farm matrix rerun ID --failed` measures anew what ended without a measurement"


_WORDS = {
    RereadKind.CHANGED: "changed: the new reading counts, the old one is kept",
    RereadKind.WITHDRAWN: "withdrawn: no time can be read any more, and they enter no comparison",
    RereadKind.READABLE: "kept beside a job that failed, and counted nowhere: its outcome stays",
    RereadKind.BROKEN: "not read: the adapter fails on them, which is a fault of the farm's",
}
