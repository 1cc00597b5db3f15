"""The pivot of comparisons: candidates by devices, with times and marks of verdicts."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.text import Text

from farm.cli.results.speedups.table import GAP
from farm.core.base.units import ratio_text
from farm.core.runs.measurement import Verdict
from farm.presentation.pivot import Pivot, pivots
from farm.presentation.speedup_notes import other_work
from farm.presentation.text import EMPTY_CELL, duration_or_nothing
from farm.wire.documents.results.speedups import SpeedupView

_MARK_BY_VERDICT = {
    Verdict.FASTER: "+",
    Verdict.FASTER_SIZE_OPEN: "+",
    Verdict.FASTER_WITHIN: "=",
    Verdict.SAME: "=",
    Verdict.SLOWER_WITHIN: "=",
    Verdict.SLOWER_SIZE_OPEN: "-",
    Verdict.SLOWER: "-",
    Verdict.UNDECIDED: "?",
}
PIVOT_LEGEND = (
    "Time and speedup: geometric means over rounds that count.\n"
    "+ faster, - slower, = within the margin, ? undecided."
)


def pivot_tables(views: Sequence[SpeedupView], *, width: int, as_given: bool = False) -> Text:
    """Return a table for each baseline: candidates by device, with times and marks of verdicts.

    Devices that do not fit beside each other follow in a further table.
    """

    lines: list[str] = []
    for pivot in pivots(views, as_given=as_given):
        cautions = other_work([view for _, cells in pivot.rows for view in cells if view is not None])
        wrapped = [line for text in cautions for line in wrap(text, width, subsequent_indent="  ")]
        lines += [pivot.heading, *_pivot_lines(pivot, width), *wrapped, ""]
    return Text("\n".join([*lines, PIVOT_LEGEND]))


def _pivot_lines(pivot: Pivot, width: int) -> Iterator[str]:
    first = ["variant", pivot.baseline, *(label for label, _ in pivot.rows)]
    first_width = max(map(len, first))
    columns = [[device, *_pivot_column(pivot, place)] for place, device in enumerate(pivot.devices)]
    while columns:
        count = 1
        while count < len(columns) and _pivot_width(columns[: count + 1], first_width) <= width:
            count += 1
        shown, columns = columns[:count], columns[count:]
        widths = [max(map(len, column)) for column in shown]
        for number, name in enumerate(first):
            cells = [f"{column[number]:>{size}}" for column, size in zip(shown, widths, strict=True)]
            yield GAP.join([f"{name:{first_width}}", *cells])
        if columns:
            yield ""


def _pivot_width(columns: Sequence[Sequence[str]], first_width: int) -> int:
    return first_width + sum(len(GAP) + max(map(len, column)) for column in columns)


def _pivot_column(pivot: Pivot, place: int) -> Iterator[str]:
    """Yield the baseline's time, and time, speedup and mark of each candidate on one device."""
    # The mark's place is kept free, so that times are below each other.
    yield f"{duration_or_nothing(pivot.baseline_ns[place])}{'':10}"
    for _, cells in pivot.rows:
        view = cells[place]
        if view is None or view.speedup is None:
            yield f"{EMPTY_CELL}{'':10}"
        else:
            mark = _MARK_BY_VERDICT[view.verdict]
            yield f"{duration_or_nothing(view.candidate_ns)}  {ratio_text(view.speedup):>6} {mark}"
