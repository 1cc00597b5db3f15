"""The results of a run: times, or speedups if there is a baseline, and metrics."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

from rich.text import Text

from farm.cli.matrices.rejections import missing_cells, not_run_table
from farm.cli.matrices.report import metric_table
from farm.cli.results.speedups.command import print_speedups
from farm.cli.shell.next_steps import farm_command
from farm.cli.shell.output import first_rows, out, print_notice
from farm.cli.shell.tables import Listing, name, number, prose
from farm.core.base.units import duration_text
from farm.core.runs.measurement import MIN_ROUNDS, CellSummary, Quality
from farm.presentation.labels import device_name
from farm.presentation.text import EMPTY_CELL, device_kind, duration_or_nothing, plural
from farm.wire.documents.matrices.matrices import MatrixResults, MatrixView
from farm.wire.documents.results.results import ResultView
from farm.wire.documents.results.speedups import GateView, SpeedupView

_ROUNDS = "time = median over rounds, each a process of its own"
_ROUND = "time = that of one process."
_LEAST = "least = the shortest iteration of all rounds."
_P90 = "p90 = 90th percentile of a round's samples, median over rounds."


def result_document(
    view: MatrixView,
    results: Iterable[ResultView],
    speedups: Iterable[SpeedupView],
    *,
    gate: GateView | None = None,
) -> MatrixResults:
    """Return all results as one JSON document."""
    return MatrixResults(matrix=view, results=tuple(results), speedups=tuple(speedups), gate=gate)


def print_result(
    view: MatrixView,
    result_views: Iterable[ResultView],
    speedup_views: Iterable[SpeedupView],
    *,
    metrics: bool = False,
) -> None:
    """Print tables to stdout, and notes and next steps to stderr.

    Metrics are those that the matrix names, which comparisons show themselves, or with `metrics` all.
    """
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
    if missing := missing_cells(view):
        out().print()
        out().print(not_run_table(missing))
    _print_metrics(view, results, is_compared=first is not None, all_of_them=metrics)
    if not any(result.time for result in results):
        print_notice("Nothing was measured.")
    elif view.rounds < MIN_ROUNDS:
        print_notice(too_few_rounds_text(view.rounds))


def _print_metrics(
    view: MatrixView, results: Sequence[ResultView], *, is_compared: bool, all_of_them: bool
) -> None:
    """Print the metrics that no table of comparisons shows, and how to see those that are not printed."""
    printed = dict.fromkeys(metric.name for result in results for metric in result.metrics)
    shown = printed if all_of_them else [name for name in printed if name in view.metrics]
    if shown and (all_of_them or not is_compared):
        out().print()
        out().print(metric_table(results, shown))
    if others := [name for name in printed if name not in shown]:
        where = f"{farm_command()} matrix watch {view.matrix_id} --metrics"
        print_notice(f"{plural(len(others), 'further metric')} ({', '.join(others[:4])}): {where}")


def too_few_rounds_text(rounds: int) -> str:
    """Return the note for a run with too few rounds for an interval."""
    count = "One round" if rounds == 1 else f"{rounds} rounds"
    return f"{count}: no interval and no verdict; the difference to another run is unknown."


def _has_cells(results: Sequence[ResultView]) -> bool:
    return len({result.label for result in results}) > 1


def _has_interval(results: Sequence[ResultView]) -> bool:
    return any(result.time and result.time.ci_low is not None for result in results)


def _has_several_rounds(results: Sequence[ResultView]) -> bool:
    return any(result.time and result.time.rounds > 1 for result in results)


def _has_least(results: Sequence[ResultView]) -> bool:
    return any(result.min_ns is not None for result in results)


def _has_p90(results: Sequence[ResultView]) -> bool:
    return any(result.p90_ns is not None for result in results)


#: One row for each cell; columns that are equal or empty in all rows are left out.
value_table = Listing[ResultView](
    name("device", device_name),
    name("cell", lambda result: result.label, is_shown=_has_cells),
    number("time", lambda result: result.time and duration_text(result.time.median)),
    number("95 % interval", lambda result: _interval_text(result.time), is_shown=_has_interval),
    number("min to max", lambda result: _extent_text(result.time), is_shown=_has_several_rounds),
    number("least", lambda result: result.time and duration_or_nothing(result.min_ns), is_shown=_has_least),
    number("p90", lambda result: result.time and duration_or_nothing(result.p90_ns), is_shown=_has_p90),
    prose("rounds", lambda result: _rounds(result)),
)


def legend(results: Sequence[ResultView]) -> Iterator[str]:
    """Return the meaning of the columns, what the clock covers, and the device models."""
    if not _has_several_rounds(results):
        yield _ROUND
    elif _has_interval(results):
        yield f"{_ROUNDS}."
        yield "95 % interval: over rounds, of this session; the next may lie outside."
    else:
        yield f"{_ROUNDS}."
    yield from _session_lines(results)
    if _has_least(results):
        yield _LEAST
    if _has_p90(results):
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
    by_kind = sorted(
        {(device_kind(r.device_model, r.soc, virtual=r.virtual), device_name(r)) for r in results}
    )
    for kind, group in groupby(by_kind, key=lambda pair: pair[0]):
        yield f"{', '.join(device for _, device in group)}: {kind}"


def _session_lines(results: Sequence[ResultView]) -> Iterator[str]:
    """Yield how far earlier sessions lie apart, which no interval of one session knows."""
    for result in results:
        if (spread := result.sessions) is not None:
            cell = f"{device_name(result)}, {result.label}" if _has_cells(results) else device_name(result)
            low, high = duration_text(spread.low_ns), duration_text(spread.high_ns)
            medians = f"medians of {low} to {high}" if low != high else f"a median of {low}"
            sessions = plural(spread.matrices, "earlier session")
            yield f"{sessions} of {cell}: {medians}."
    if _has_interval(results) and not any(result.sessions for result in results):
        yield "There is no earlier session to tell how far sessions lie apart."


def _rounds(result: ResultView) -> str:
    """Return `4 valid, 1 noisy`."""
    counts = [(result.rounds_by_quality.get(quality), quality) for quality in Quality]
    return ", ".join(f"{count} {quality}" for count, quality in counts if count is not None) or EMPTY_CELL


def _interval_text(time: CellSummary | None) -> str | None:
    return None if time is None else _range(time, time.ci_low, time.ci_high)


def _extent_text(time: CellSummary | None) -> str | None:
    return None if time is None else _range(time, time.low, time.high)


def _range(time: CellSummary, low: float | None, high: float | None) -> str:
    """Return `12.1 to 12.6` in the unit of the median, or with units if they differ."""
    if low is None or high is None:
        return EMPTY_CELL
    unit = duration_text(time.median).partition(" ")[2]
    texts = [duration_text(low), duration_text(high)]
    if all(text.endswith(f" {unit}") for text in texts):
        texts = [text.removesuffix(f" {unit}") for text in texts]
    return " to ".join(texts)
