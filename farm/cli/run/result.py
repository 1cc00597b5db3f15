"""The results of a run: times, or speedups if there is a baseline, and metrics."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby

from rich.table import Table
from rich.text import Text

from farm.cli.results.speedups import print_speedups
from farm.cli.shell.formatting import EMPTY_CELL, device_kind, duration_or_nothing, plural
from farm.cli.shell.next_steps import farm_command
from farm.cli.shell.output import first_rows, out, print_notice
from farm.cli.shell.tables import add_row, new_table
from farm.core.base.units import duration_text
from farm.core.runs.measurement import Quality
from farm.core.runs.verdict import MIN_ROUNDS
from farm.wire.documents.matrices.matrices import MatrixView, SpeedupView
from farm.wire.documents.results.results import CellSummaryView, MetricView, ResultView

_ROUNDS = "time = median over rounds, each a process of its own"
_ROUND = "time = that of one process."
_P90 = "p90 = 90th percentile of a round's samples, median over rounds."


def result_document(
    view: MatrixView, results: Iterable[ResultView], speedups: Iterable[SpeedupView]
) -> dict[str, object]:
    """Return all results as one JSON document."""
    return {
        "matrix": view.model_dump(mode="json"),
        "results": [result.model_dump(mode="json") for result in results],
        "speedups": [speedup.model_dump(mode="json") for speedup in speedups],
    }


def print_result(
    view: MatrixView, result_views: Iterable[ResultView], speedup_views: Iterable[SpeedupView]
) -> None:
    """Print tables to stdout, and notes and next steps to stderr."""
    where = f"GET /api/v1/matrices/{view.matrix_id}/results?after=INDEX returns all, page by page."
    results = first_rows(result_views, where_all_are=where)
    speedups = iter(speedup_views)
    if first := next(speedups, None):
        print_speedups(chain([first], speedups))
    elif any(result.time for result in results):
        out().print(value_table(results))
        for line in legend(results):
            out().print(Text(line, style="dim"))
        timed = next(result for result in results if result.time)
        print_notice(f"Details: {farm_command()} explain cell {timed.cell_id}")
    if any(result.metrics for result in results):
        out().print()
        out().print(metric_table(results))
    if not any(result.time for result in results):
        print_notice("Nothing was measured.")
    elif view.rounds < MIN_ROUNDS:
        print_notice(too_few_rounds_text(view.rounds))


def too_few_rounds_text(rounds: int) -> str:
    """Return the note for a run with too few rounds for an interval."""
    count = "One round" if rounds == 1 else f"{rounds} rounds"
    return f"{count}: no interval and no verdict; the difference to another run is unknown."


def value_table(results: Sequence[ResultView]) -> Table:
    """Return one row for each cell, without columns that are equal or empty in all rows."""
    numbers: dict[str, Callable[[CellSummaryView, ResultView], str]] = {
        "time": lambda time, _: duration_text(time.median),
        "95 % interval": lambda time, _: _range(time, time.ci_low, time.ci_high),
        "min to max": lambda time, _: _range(time, time.low, time.high),
        "p90": lambda _, result: duration_or_nothing(result.p90_ns),
    }
    shown = [name for name in numbers if name in _informative_columns(results)]
    has_cells = _has_cells(results)
    table = new_table(names=["device", *["cell"] * has_cells], numbers=shown, prose=("rounds",))
    for result in results:
        names = [result.device_id, *[result.label] * has_cells]
        cells = [numbers[name](result.time, result) if result.time else EMPTY_CELL for name in shown]
        add_row(table, *names, *cells, _rounds(result))
    return table


def _informative_columns(results: Sequence[ResultView]) -> set[str]:
    """Return the names of number columns that are not empty."""
    times = [result.time for result in results if result.time]
    is_shown = {
        "time": True,
        "95 % interval": any(time.ci_low is not None for time in times),
        "min to max": any(time.rounds > 1 for time in times),
        "p90": any(result.p90_ns is not None for result in results),
    }
    return {name for name, shown in is_shown.items() if shown}


def _has_cells(results: Sequence[ResultView]) -> bool:
    return len({result.label for result in results}) > 1


def legend(results: Sequence[ResultView]) -> Iterator[str]:
    """Return the meaning of the columns, what the clock covers, and the device models."""
    if "min to max" in _informative_columns(results):
        yield (
            f"{_ROUNDS}; 95 % interval over rounds."
            if "95 % interval" in _informative_columns(results)
            else f"{_ROUNDS}."
        )
    else:
        yield _ROUND
    if "p90" in _informative_columns(results):
        yield _P90
    for covers in dict.fromkeys(result.clock_covers for result in results):
        yield f"The clock covers {covers}."
    if any(result.counted not in (None, Quality.VALID) for result in results):
        yield "Without a valid round, times are of the other rounds and are not used in comparisons."
    if others := sum(result.other_builds for result in results):
        yield (
            f"{plural(others, 'round')} measured on another build of the device left out: "
            "`farm events --kind device_updated` shows what changed."
        )
    by_kind = sorted({(device_kind(r.device_model, r.soc, virtual=r.virtual), r.device_id) for r in results})
    for kind, group in groupby(by_kind, key=lambda pair: pair[0]):
        yield f"{', '.join(device for _, device in group)}: {kind}"


def metric_table(results: Sequence[ResultView]) -> Table:
    """Return one row for each cell and metric."""
    has_cells = _has_cells(results)
    names = ["device", *["cell"] * has_cells, "metric"]
    table = new_table(names=names, numbers=("median", "min to max"), prose=("unit", "better"))
    for result in results:
        for metric in result.metrics:
            own = [result.device_id, *[result.label] * has_cells, metric.name]
            add_row(table, *own, *_metric_numbers(metric), metric.unit, str(metric.better))
    return table


def _rounds(result: ResultView) -> str:
    """Return `4 valid, 1 noisy`."""
    qualities = [quality for quality in Quality if quality in result.rounds_by_quality]
    return ", ".join(f"{result.rounds_by_quality[quality]} {quality}" for quality in qualities) or EMPTY_CELL


def _range(time: CellSummaryView, low: float | None, high: float | None) -> str:
    """Return `12.1 to 12.6` in the unit of the median, or with units if they differ."""
    if low is None or high is None:
        return EMPTY_CELL
    unit = duration_text(time.median).partition(" ")[2]
    texts = [duration_text(low), duration_text(high)]
    if all(text.endswith(f" {unit}") for text in texts):
        texts = [text.removesuffix(f" {unit}") for text in texts]
    return " to ".join(texts)


def _metric_numbers(metric: MetricView) -> tuple[str, str]:
    level = metric.level
    return f"{level.median:.6g}", f"{level.low:.6g} to {level.high:.6g}"
