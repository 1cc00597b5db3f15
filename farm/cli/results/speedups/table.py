"""The table of comparisons: by device, with intervals, verdicts and a legend."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from farm.core.base.units import quantity_text, ratio_text
from farm.core.results.metric_comparison import MetricComparison
from farm.core.runs.measurement import ENERGY_METRICS, Verdict
from farm.presentation.labels import device_name
from farm.presentation.speedup_blocks import (
    blocks_by_device,
    by_cell,
    row_name,
    setup_text,
    shared_settings,
    shown_baseline,
    shown_verdict,
    with_short_labels,
)
from farm.presentation.speedup_notes import DISCOVERY, discovered_rows, legend, notes
from farm.presentation.text import EMPTY_CELL, change_text, device_kind, duration_or_nothing, interval_text
from farm.wire.documents.results.speedups import SpeedupView

_HEADINGS = ("speedup", "95 % interval", "time", "difference", "rounds", "verdict")
_STYLE_BY_VERDICT = {
    Verdict.FASTER: "green",
    Verdict.FASTER_SIZE_OPEN: "green",
    Verdict.SLOWER: "red",
    Verdict.SLOWER_SIZE_OPEN: "red",
    Verdict.UNDECIDED: "yellow",
}
#: The column that a narrow terminal does without: the two times have it.
_DIFFERENCE = _HEADINGS.index("difference")
GAP = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class _SpeedupRow:
    name: str
    cells: tuple[str, ...]
    style: str


def speedup_table(views: Sequence[SpeedupView], *, width: int, as_given: bool = False) -> Text:
    """Return the table for a terminal of `width` columns; rows that do not fit take two lines.

    Rows of one device and model have the order of their matrix, or that in which they are given.
    """
    discoveries = discovered_rows(views)
    blocks = [
        _block(block, discoveries, width) for block in blocks_by_device(views if as_given else by_cell(views))
    ]
    last = Text("\n".join(legend(views, width=width)), style="dim")
    return Text("\n\n").join([*blocks, last])


def _block(views: Sequence[SpeedupView], discoveries: Container[int], width: int) -> Text:
    """Return the heading, rows and notes of one device and model."""
    about = setup_text(views)
    views = with_short_labels(views)
    baselines = {view.baseline for view in views}
    rows = [
        _row(view, name_baseline=len(baselines) > 1, is_discovery=view.cell_id in discoveries)
        for view in views
    ]
    lines = [
        *_heading(views, about, baselines),
        *_layout_rows(rows, width),
        *map(Text, notes(views, width=width)),
    ]
    lines += map(Text, _metric_lines(views))
    return Text("\n").join(lines)


def _heading(views: Sequence[SpeedupView], about: str, baselines: set[str]) -> Iterator[Text]:
    view = views[0]
    kind = device_kind(view.device_model, view.soc, virtual=view.virtual)
    yield Text(f"{device_name(view)}  ({kind})", style="bold")
    if len(baselines) == 1:
        about += f"; baseline {shown_baseline(view)}"
    yield Text(about)
    if settings := shared_settings(views):
        yield Text(f"with {settings}")


def _row(view: SpeedupView, *, name_baseline: bool, is_discovery: bool) -> _SpeedupRow:
    cells = (
        EMPTY_CELL if view.speedup is None else ratio_text(view.speedup),
        interval_text(view.ci_low, view.ci_high),
        change_text(view.baseline_ns, view.candidate_ns),
        _difference(view.baseline_ns, view.candidate_ns),
        _rounds_text(view),
        shown_verdict(view) + (DISCOVERY if is_discovery else ""),
    )
    return _SpeedupRow(
        name=row_name(view, name_baseline=name_baseline),
        cells=cells,
        style=_STYLE_BY_VERDICT.get(view.verdict, ""),
    )


def _rounds_text(view: SpeedupView) -> str:
    """Return `10`, or `12 (look 3 of 5)` where the matrix grows."""
    basis = view.interval
    return f"{view.rounds} (look {basis.look} of {basis.looks})" if basis.looks else str(view.rounds)


def _difference(baseline_ns: float | None, candidate_ns: float | None) -> str:
    """Return the extra time of the candidate; negative if it is faster."""
    if baseline_ns is None or candidate_ns is None:
        return EMPTY_CELL
    text = duration_or_nothing(candidate_ns - baseline_ns)
    return text if text.startswith("-") else f"+{text}"


def _layout_rows(rows: Sequence[_SpeedupRow], width: int) -> Iterator[Text]:
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *(row.cells for row in rows), strict=True)]
    name_width = max(len("candidate"), *(len(row.name) for row in rows))
    numbers_width = sum(widths) + len(GAP) * len(widths)
    if name_width + numbers_width <= width:
        yield Text(f"{'candidate':{name_width}}" + _align(_HEADINGS, widths), style="bold")
        for row in rows:
            yield Text(f"{row.name:{name_width}}") + Text(_align(row.cells, widths), style=row.style)
        return
    kept = [place for place in range(len(widths)) if numbers_width <= width or place != _DIFFERENCE]

    def line(cells: Sequence[str]) -> str:
        return _align([cells[place] for place in kept], [widths[place] for place in kept])

    yield Text("candidate\n" + line(_HEADINGS), style="bold")
    for row in rows:
        yield Text(f"{row.name}\n") + Text(line(row.cells), style=row.style)


def _align(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Align numbers to the right and the verdict to the left."""
    padded = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
    return GAP + GAP.join([*padded[:-1], cells[-1]])


def _metric_lines(views: Sequence[SpeedupView]) -> Iterator[str]:
    """Yield a heading for each metric that the matrix names, and a row for each candidate."""
    rows = [(view.candidate, metric) for view in views for metric in view.metrics]
    by_name: dict[str, list[tuple[str, MetricComparison]]] = {}
    for candidate, metric in rows:
        by_name.setdefault(metric.name, []).append((candidate, metric))
    for name, own in by_name.items():
        unit, better = own[0][1].unit, own[0][1].better
        yield f"{name} ({unit}, {better} is better), medians: baseline → candidate"
        width = max(len(candidate) for candidate, _ in own)
        for candidate, metric in own:
            values = [
                EMPTY_CELL if v is None else quantity_text(v, unit).removesuffix(f" {unit}")
                for v in (metric.baseline, metric.candidate)
            ]
            ratio = f"{GAP}{ratio_text(metric.ratio)}" if metric.ratio and name in ENERGY_METRICS else ""
            yield f"{GAP}{candidate:{width}}{GAP}{' → '.join(values)}{ratio}"
