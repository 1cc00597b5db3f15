"""The pivot of comparisons: candidates by devices, with times and marks of verdicts."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from farm.cli.results.speedups.table import GAP
from farm.core.base.units import ratio_text
from farm.core.runs.measurement import Verdict
from farm.presentation.labels import device_name
from farm.presentation.speedup_blocks import by_cell, setup_text, shared_settings, with_short_labels
from farm.presentation.text import EMPTY_CELL, duration_or_nothing
from farm.wire.documents.matrices.matrices import SpeedupView

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

    def group(view: SpeedupView) -> tuple[int, str, str, str]:
        return -view.matrix_id, view.model or "", view.harness, view.baseline

    lines: list[str] = []
    for _, own in groupby(sorted(views if as_given else by_cell(views), key=group), key=group):
        full = list(own)
        shown, about = with_short_labels(full), setup_text(full)
        settings = shared_settings(shown)
        lines.append(f"{about}; baseline {shown[0].baseline}" + (f", with {settings}" if settings else ""))
        lines += [*_pivot(shown, width), ""]
    return Text("\n".join([*lines, PIVOT_LEGEND]))


def _pivot(views: Sequence[SpeedupView], width: int) -> Iterator[str]:
    labels = list(dict.fromkeys(view.candidate for view in views))
    first = [views[0].baseline, *labels]
    first_width = max(len("variant"), *map(len, first))
    columns = [
        [name, *_pivot_column([view for view in views if view.device_id == device_id], labels)]
        for device_id, name in {view.device_id: device_name(view) for view in views}.items()
    ]
    while columns:
        count = 1
        while count < len(columns) and _pivot_width(columns[: count + 1], first_width) <= width:
            count += 1
        shown, columns = columns[:count], columns[count:]
        widths = [max(map(len, column)) for column in shown]
        for number, name in enumerate(["variant", *first]):
            cells = [f"{column[number]:>{size}}" for column, size in zip(shown, widths, strict=True)]
            yield GAP.join([f"{name:{first_width}}", *cells])
        if columns:
            yield ""


def _pivot_width(columns: Sequence[Sequence[str]], first_width: int) -> int:
    return first_width + sum(len(GAP) + max(map(len, column)) for column in columns)


def _pivot_column(views: Sequence[SpeedupView], labels: Sequence[str]) -> Iterator[str]:
    """Yield the baseline's time, and time, speedup and mark of each candidate on one device."""
    view_by_label = {view.candidate: view for view in views}
    # The mark's place is kept free, so that times are below each other.
    yield f"{duration_or_nothing(views[0].baseline_ns)}{'':10}"
    for label in labels:
        view = view_by_label.get(label)
        if view is None or view.speedup is None:
            yield f"{EMPTY_CELL}{'':10}"
        else:
            mark = _MARK_BY_VERDICT[view.verdict]
            yield f"{duration_or_nothing(view.candidate_ns)}  {ratio_text(view.speedup):>6} {mark}"
