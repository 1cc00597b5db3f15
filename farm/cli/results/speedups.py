"""`farm speedups`: comparisons by device, with intervals, verdicts and a legend."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

import typer
from rich.text import Text

from farm.cli.results.gate import GateOption, judge, print_gate
from farm.cli.results.group_speedups import ByOption, check_by, group_tables
from farm.cli.shell.address import connect
from farm.cli.shell.next_steps import farm_command
from farm.cli.shell.options import (
    At,
    Json,
    MatrixArgument,
    MatrixOption,
    PastSince,
    selected_matrix,
)
from farm.cli.shell.output import first_rows, out, print_json_list, print_notice, show
from farm.core.base.units import ratio_text
from farm.core.errors import InvalidInput
from farm.core.results.metric_comparison import MetricComparison
from farm.core.results.statistics.verdict import verdict_text
from farm.core.runs.measurement import ENERGY_METRICS, Verdict
from farm.presentation.labels import device_name, shared_flags_text, short_labels
from farm.presentation.speedup_notes import DISCOVERY, discovered_rows, legend, notes
from farm.presentation.text import (
    EMPTY_CELL,
    change_text,
    device_kind,
    duration_or_nothing,
    past_moment,
)
from farm.wire.documents.matrices.matrices import SpeedupView

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
_GAP = "  "
#: Labels of duplicates have it already.
_AA_SUFFIX = " (A/A)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _SpeedupRow:
    name: str
    cells: tuple[str, ...]
    style: str


def speedup_table(views: Sequence[SpeedupView], *, width: int) -> Text:
    """Return the table for a terminal of `width` columns; rows that do not fit take two lines."""
    in_order = sorted(views, key=lambda view: (*_group_key(view), view.cell_id))
    discoveries = discovered_rows(views)
    blocks = [_block(list(group), discoveries, width) for _, group in groupby(in_order, key=_group_key)]
    last = Text("\n".join(legend(views, width=width)), style="dim")
    return Text("\n\n").join([*blocks, last])


def _group_key(view: SpeedupView) -> tuple[str, str, str, int]:
    return view.device_id, view.model or "", view.harness, view.matrix_id


def _block(views: Sequence[SpeedupView], discoveries: Container[int], width: int) -> Text:
    """Return the heading, rows and notes of one device and model."""
    about = _about(views)
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


def with_short_labels(views: Sequence[SpeedupView]) -> list[SpeedupView]:
    """Return comparisons of one model whose labels show what differs: without the words of all labels."""
    short = short_labels(label for view in views for label in (view.candidate, view.baseline))
    return [
        view.model_copy(update={"candidate": short[view.candidate], "baseline": short[view.baseline]})
        for view in views
    ]


def _about(views: Sequence[SpeedupView]) -> str:
    """Return model, words of all labels, harness and matrix."""
    view = views[0]
    short = with_short_labels(views)[0]
    left_out = [word for word in view.candidate.split() if word not in short.candidate.split()]
    common = " ".join(word for word in left_out if word != view.model and "=" not in word)
    return ", ".join(filter(None, [view.model, common, view.harness, f"matrix {view.matrix_id}"]))


def _heading(views: Sequence[SpeedupView], about: str, baselines: set[str]) -> Iterator[Text]:
    view = views[0]
    kind = device_kind(view.device_model, view.soc, virtual=view.virtual)
    yield Text(f"{device_name(view)}  ({kind})", style="bold")
    if len(baselines) == 1:
        about += f"; baseline {view.baseline}"
    yield Text(about)
    if settings := _shared_settings(views):
        yield Text(f"with {settings}")


def _shared_settings(views: Sequence[SpeedupView]) -> str:
    """Return the flags that are the same in all rows and in no label."""
    return shared_flags_text(views, without={word for view in views for word in view.candidate.split()})


def _row(view: SpeedupView, *, name_baseline: bool, is_discovery: bool) -> _SpeedupRow:
    name = view.candidate.removesuffix(_AA_SUFFIX) + (_AA_SUFFIX if view.aa else "")
    if name_baseline:
        name += f" vs {view.baseline}"
    cells = (
        EMPTY_CELL if view.speedup is None else ratio_text(view.speedup),
        _interval(view.ci_low, view.ci_high),
        change_text(view.baseline_ns, view.candidate_ns),
        _difference(view.baseline_ns, view.candidate_ns),
        _rounds_text(view),
        verdict_text(view.verdict, margin=view.margin) + (DISCOVERY if is_discovery else ""),
    )
    return _SpeedupRow(name=name, cells=cells, style=_STYLE_BY_VERDICT.get(view.verdict, ""))


def _rounds_text(view: SpeedupView) -> str:
    """Return `10`, or `12 (look 3 of 5)` where the matrix grows."""
    basis = view.interval
    return f"{view.rounds} (look {basis.look} of {basis.looks})" if basis.looks else str(view.rounds)


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return EMPTY_CELL
    return f"{_ratio_text(low)} to {_ratio_text(high)}"


def _ratio_text(ratio: float) -> str:
    return ratio_text(ratio).removesuffix("x")


def _difference(baseline_ns: float | None, candidate_ns: float | None) -> str:
    """Return the extra time of the candidate; negative if it is faster."""
    if baseline_ns is None or candidate_ns is None:
        return EMPTY_CELL
    text = duration_or_nothing(candidate_ns - baseline_ns)
    return text if text.startswith("-") else f"+{text}"


def _layout_rows(rows: Sequence[_SpeedupRow], width: int) -> Iterator[Text]:
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *(row.cells for row in rows), strict=True)]
    name_width = max(len("candidate"), *(len(row.name) for row in rows))
    numbers_width = sum(widths) + len(_GAP) * len(widths)
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
    return _GAP + _GAP.join([*padded[:-1], cells[-1]])


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
            values = [EMPTY_CELL if v is None else f"{v:.6g}" for v in (metric.baseline, metric.candidate)]
            ratio = f"{_GAP}{ratio_text(metric.ratio)}" if metric.ratio and name in ENERGY_METRICS else ""
            yield f"{_GAP}{candidate:{width}}{_GAP}{' → '.join(values)}{ratio}"


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


def pivot_tables(views: Sequence[SpeedupView], *, width: int) -> Text:
    """Return a table for each baseline: candidates by device, with times and marks of verdicts.

    Devices that do not fit beside each other follow in a further table.
    """

    def group(view: SpeedupView) -> tuple[int, str, str, str]:
        return -view.matrix_id, view.model or "", view.harness, view.baseline

    lines: list[str] = []
    for _, own in groupby(sorted(views, key=lambda view: (*group(view), view.cell_id)), key=group):
        full = list(own)
        shown, about = with_short_labels(full), _about(full)
        settings = _shared_settings(shown)
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
            yield _GAP.join([f"{name:{first_width}}", *cells])
        if columns:
            yield ""


def _pivot_width(columns: Sequence[Sequence[str]], first_width: int) -> int:
    return first_width + sum(len(_GAP) + max(map(len, column)) for column in columns)


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


#: Rows named with their cells below a table.
_ROWS_NUMBERED = 4


def speedups(
    number: MatrixArgument = None,
    matrix: MatrixOption = None,
    device: Annotated[str | None, typer.Option(help="Only this device.")] = None,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    across_controls: Annotated[
        bool,
        typer.Option(
            "--across-controls",
            help="Also compare runs of different control levels: free, pinned (to cores), fixed (clocks).",
        ),
    ] = False,
    pivot: Annotated[
        bool, typer.Option("--pivot", help="Candidates by devices, with times and marks.")
    ] = False,
    gate: GateOption = None,
    since: PastSince = None,
    at: At = None,
    by: ByOption = None,
    as_json: Json = False,
) -> None:
    """Compare every candidate with its baseline, by device.

    Without a matrix, each pair is compared over its newest matrices of equal versions: file, program, build
    and controls; 20 of them at most.

    Example: farm speedups 3 --device phone-1
    """
    matrix_id = selected_matrix(number, matrix)
    begin, known_at = past_moment(since, option="--since"), past_moment(at, option="--at")
    if matrix_id is not None and begin is not None:
        raise InvalidInput("--since goes with all matrices, not with one", hint="leave one of them out")
    if begin is not None and known_at is not None and begin > known_at:
        raise InvalidInput("--since is later than --at", hint="give an earlier --since")
    if by is not None:
        check_by(by, others=(matrix_id, device, gate, known_at, across_controls or None, pivot or None))
        with connect() as farm:
            groups = farm.group_speedups(by, model=model, since=begin)
        show(groups, group_tables, as_json=as_json)
        return
    with connect() as farm:
        views = farm.speedups(
            matrix_id=matrix_id,
            device=device,
            model=model,
            across_controls=across_controls,
            since=begin,
            at=known_at,
        )
        if gate is not None:
            views = iter(compared := list(views))
        if as_json:
            print_json_list(views)
        else:
            print_speedups(views, pivot=pivot)
    if across_controls and not as_json:
        print_notice(
            "Runs of different control levels are included: the difference may be caused by the controls."
        )
    if gate is not None:
        judged = judge(gate, compared)
        print_gate(gate, judged)
        raise typer.Exit(judged.outcome.exit_code)


def print_speedups(comparisons: Iterable[SpeedupView], *, pivot: bool = False) -> None:
    """Print the table to stdout, and hints to stderr."""
    views = first_rows(
        comparisons, where_all_are="--device and --model select fewer, `farm speedups --json` prints all."
    )
    if not views:
        print_notice("No comparisons yet: `farm matrix list` shows the progress of matrices.")
        return
    console = out()
    draw = pivot_tables if pivot else speedup_table
    console.print(draw(views, width=console.width), soft_wrap=True)
    print_notice(f"Details: {farm_command()} explain cell {_numbered_examples(views)}")


def _numbered_examples(views: Sequence[SpeedupView]) -> str:
    """Return `12 (int8-core lite) or 13 (float16 lite)`, for the first rows."""
    names = [f"{view.cell_id} ({view.candidate})" for view in views[:_ROWS_NUMBERED]]
    more = len(views) - len(names)
    return " or ".join(names) + (f"; `farm speedups --json` lists {more} more cells" if more else "")
