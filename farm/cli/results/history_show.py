"""`farm history MODEL`: the trend of each series, with the points at which a version changed."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from textwrap import wrap
from typing import Annotated

import typer
from rich.text import Text

from farm.cli.shell.address import connect
from farm.cli.shell.options import Json, MatrixName, MineOfMatrices, Since
from farm.cli.shell.output import first_rows, out, print_json_list, print_notice, print_unchanged
from farm.core.base.units import duration_text, ratio_text
from farm.core.errors import InvalidInput
from farm.core.results.history.change_text import dates_text, effect_text
from farm.presentation.jobs.bars import bar
from farm.presentation.labels import device_name, short_labels
from farm.presentation.text import device_kind, interval_text, past_moment, plural
from farm.presentation.trends import changed_versions, csv_lines
from farm.wire.documents.results.history import HistoryPoint, SeriesChange, SeriesHistory

#: Between two points of which a version changed, and before the first point of a level that was found.
_BREAK, _CHANGE = "|", "!"
#: A trend whose values lie within this range is drawn flat, as a fraction: noise is no trend.
_LEAST_RANGE = 0.02
_INDENT = "  "
#: The least columns of bars, however long the numbers beside them are.
_LEAST_BARS = 10
#: Breaks that are listed for one series: the newest.
_MAX_BREAKS = 5
_LEGEND = (
    "speedup = baseline time / time: above 1 it is faster. Without a baseline, time.\n"
    "Each bar is a session, or several where there are many; | is a changed version,\n"
    "! a change that was found: `farm regressions show ID` has its evidence."
)


def show_history(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="Only this model.")] = None,
    device: Annotated[str | None, typer.Option(help="Only this device, by id or label.")] = None,
    harness: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this harness, such as a program without a model.")
    ] = None,
    variant: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only variants with this text in their name.")
    ] = None,
    since: Since = None,
    part: MatrixName = None,
    mine: MineOfMatrices = False,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most N series.")] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the points as CSV, for `farm history detect`.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the trend of each series: speedup and time by session, and where a version changed.

    A session is one matrix on one device. `farm history detect` finds the changes in a file of points.

    Example: farm history show mobilenet_v2 --device phone-1 --since 1y
    """
    if as_csv and as_json:
        raise InvalidInput("--csv and --json exclude each other", hint="leave one of them out")
    begin = past_moment(since, option="--since")
    with connect() as farm:
        histories = farm.history(
            device=device,
            model=model,
            harness=harness,
            variant=variant,
            since=begin,
            name=part,
            mine=mine,
            limit=limit,
        )
        if as_json:
            print_json_list(histories)
        elif as_csv:
            for line in csv_lines(histories):
                print_unchanged(f"{line}\n")
        else:
            _print_trends(histories, filtered=any((device, model, harness, variant, since, part, mine)))


def _print_trends(histories: Iterable[SeriesHistory], *, filtered: bool) -> None:
    listed = first_rows(
        histories,
        where_all_are="--device, --harness and --variant select fewer, `farm history --json` prints all.",
    )
    if not listed:
        fewer = " matches: fewer filters may show some" if filtered else ""
        print_notice(f"No history{fewer}; `farm matrix list` shows what was measured.")
        return
    console = out()
    console.print(trends_text(listed, width=console.width), soft_wrap=True)


def trends_text(histories: Sequence[SeriesHistory], *, width: int) -> Text:
    """Return the trends by device and model, for a terminal of `width` columns."""

    def group(view: SeriesHistory) -> tuple[str, str, str]:
        return view.device_id, view.model or "", view.harness

    def place(view: SeriesHistory) -> tuple[str, str, str, str, str, int]:
        return *group(view), view.baseline or "", view.label, view.series_id

    blocks = []
    for _, own in groupby(sorted(histories, key=place), key=group):
        views = list(own)
        first = views[0]
        kind = device_kind(first.device_model, first.soc, virtual=first.virtual)
        lines = [Text(f"{device_name(first)}  ({kind})", style="bold")]
        lines.append(Text(", ".join(filter(None, [first.model, first.harness]))))
        names = short_labels(name for view in views for name in (view.label, view.baseline) if name)
        for view in views:
            baseline = f" vs {names[view.baseline]}" if view.baseline else ""
            lines += map(Text, _trend_lines(view, f"{names[view.label]}{baseline}", width))
        blocks.append(Text("\n").join(lines))
    return Text("\n\n").join([*blocks, Text(_LEGEND, style="dim")])


def _trend_lines(view: SeriesHistory, name: str, width: int) -> Iterator[str]:
    points = view.points
    first, last = points[0], points[-1]
    days = _day(last) if _day(first) == _day(last) else f"{_day(first)} to {_day(last)}"
    yield f"{name}: {plural(len(points), 'session')}, {days}"
    values = [point.speedup or point.time_ns for point in points]
    ends = _value_text(points[0]) if len(points) == 1 else f"{_value_text(first)} to {_value_text(last)}"
    interval = "" if last.ci_low is None else f", now {interval_text(last.ci_low, last.ci_high)}"
    time = f", {duration_text(last.time_ns)}" if last.speedup is not None else ""
    numbers = f"{ends}{interval}{time}"
    room = max(_LEAST_BARS, width - len(numbers) - 2 * len(_INDENT))
    bars = sparkline(values, _marks(view), width=room)
    yield f"{_INDENT}{bars}{_INDENT}{numbers}"
    breaks = [(before, point) for before, point in pairwise(points) if point.changed]
    if len(breaks) > _MAX_BREAKS:
        yield f"  {plural(len(breaks), 'change')} of versions; the last {_MAX_BREAKS}:"
    for before, point in breaks[-_MAX_BREAKS:]:
        changes = "; ".join(changed_versions(before, point))
        line = f"{_INDENT}| {_day(point)}  {changes}"
        yield from wrap(line, width, subsequent_indent=2 * _INDENT, break_on_hyphens=False)

    for change in view.changes[-_MAX_BREAKS:]:
        line = f"{_INDENT}{_CHANGE} {_change_line(change)}"
        yield from wrap(line, width, subsequent_indent=2 * _INDENT, break_on_hyphens=False)


def _marks(view: SeriesHistory) -> list[str]:
    """Return the mark before each point: of a change that was found, of a changed version, or none."""
    begins = {change.cell_id for change in view.changes}
    return [_CHANGE if point.cell_id in begins else _BREAK if point.changed else "" for point in view.points]


def _change_line(change: SeriesChange) -> str:
    dates = dates_text(*(at.astimezone().date() for at in (change.before_at, change.since_at)))
    effect = effect_text(change.delta, change.se_delta)
    return f"{dates}  change {change.change_id}: {effect}, {change.cause}, {change.state}"


def _value_text(point: HistoryPoint) -> str:
    return duration_text(point.time_ns) if point.speedup is None else ratio_text(point.speedup)


def _day(point: HistoryPoint) -> str:
    return point.ended_at.astimezone().strftime("%Y-%m-%d")


def sparkline(values: Sequence[float], marks: Sequence[str], *, width: int) -> str:
    """Return a bar for each value on a logarithmic scale, behind its mark; the first needs none.

    Where there are more values than columns, neighbours between two marks share a bar: their geometric mean.
    """
    runs: list[list[float]] = []
    between: list[str] = []
    for value, mark in zip(values, marks, strict=True):
        if mark or not runs:
            between.append(mark if runs else "")
            runs.append([])
        runs[-1].append(math.log(value))
    space = max(len(runs), width - (len(runs) - 1))
    total = len(values)
    bars = [_averaged(run, max(1, min(len(run), len(run) * space // total))) for run in runs]
    low, high = (bound(log for run in bars for log in run) for bound in (min, max))
    if high - low < _LEAST_RANGE:
        # Flat, in the middle.
        low, high = low - 1.0, low + 1.0
    return "".join(
        mark + "".join(bar(log, low, high) for log in run) for mark, run in zip(between, bars, strict=True)
    )


def _averaged(logs: Sequence[float], count: int) -> list[float]:
    edges = [len(logs) * number // count for number in range(count + 1)]
    return [math.fsum(logs[a:b]) / (b - a) for a, b in pairwise(edges)]
