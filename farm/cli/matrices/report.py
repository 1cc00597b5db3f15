"""The report of one matrix, and that of its plan."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.matrices.rejections import missing_cells, not_run_table, rejections
from farm.cli.shell.next_steps import farm_command
from farm.cli.shell.tables import Listing, name, number, prose
from farm.core.base.ids import DeviceId
from farm.core.base.units import elapsed_text, quantity_text, size_text
from farm.core.jobs.job import JobState
from farm.core.runs.measurement import Outcome, Quality
from farm.presentation.labels import NamedDevice, device_name, shared_setup_text, short_labels
from farm.presentation.text import (
    counts_text,
    duration_or_nothing,
    failure_text,
    local_time_text,
    matrix_state_text,
    plural,
    plural_range,
    range_text,
    round_text,
    time_left_text,
)
from farm.wire.documents.matrices.jobs import JobView
from farm.wire.documents.matrices.matrices import CellView, DeviceProgress, MatrixSummary, MatrixView
from farm.wire.documents.results.results import MetricView

#: States and outcomes of a job that are not failures.
_HEALTHY_STATES = (JobState.QUEUED, JobState.ACTIVE, Outcome.SUCCEEDED)
_MEDIAN = "time = median over rounds; `farm speedups` compares geometric means, which differ from it."
_STEADY = "Each run's time is its steady one: the median of its last fifth."


class MeasuredCell(NamedDevice, Protocol):
    """A cell with its metrics."""

    @property
    def label(self) -> str: ...
    @property
    def metrics(self) -> Sequence[MetricView]: ...


def matrix_report(view: MatrixView) -> RenderableType:
    """Return the report of one matrix."""
    parts: list[RenderableType] = [Text(headline(view), style="bold"), Text(_summary(view))]
    if view.finished_at is None:
        parts += [Text(progress_line(device)) for device in view.progress]
    for cells in _by_model(view.cell_list):
        parts += [Text(""), *_headings(cells), cell_table(with_short_labels(cells))]
    if len(view.cell_list) < view.cells:
        parts += [Text(f"Only {len(view.cell_list)} of {plural(view.cells, 'cell')} are shown.")]
    if any(cell.value_ns is not None for cell in view.cell_list):
        parts += [Text(_MEDIAN, style="dim")]
        parts += [Text(_STEADY, style="dim")] if view.sustained_s is not None else []
    if any(cell.metrics for cell in view.cell_list):
        parts += [Text(""), metric_table(view.cell_list)]
    if missing := missing_cells(view):
        parts += [Text(""), not_run_table(missing)]
    parts += [Text(line) for line in failures(view)]
    return Group(*parts)


def _by_model(cells: Sequence[CellView]) -> list[list[CellView]]:
    """Return the cells of each model, in their order."""
    by_model: dict[str | None, list[CellView]] = {}
    for cell in cells:
        by_model.setdefault(cell.model, []).append(cell)
    return list(by_model.values())


def _headings(cells: Sequence[CellView]) -> list[RenderableType]:
    """Return what all rows of a table have in common; no line if that is nothing."""
    names = {device_name(cell) for cell in cells}
    where = f"on {names.pop()}" if len(names) == 1 else ""
    text = ", ".join(filter(None, [shared_setup_text(cells), where]))
    return [Text(text)] if text else []


def with_short_labels(cells: Sequence[CellView]) -> list[CellView]:
    """Return cells of one model whose labels show what differs."""
    short = short_labels(cell.label for cell in cells)
    return [cell.model_copy(update={"label": short[cell.label]}) for cell in cells]


def headline(view: MatrixView) -> str:
    """Return the matrix and its state."""
    state = matrix_state_text(view.state, jobs=view.jobs, not_queued=view.not_queued)
    return f"matrix {view.matrix_id} ({view.name}): {state}"


def _summary(view: MatrixView) -> str:
    shape = f"{plural(view.cells, 'cell')} x {rounds_text(view)} with {view.harness}"
    again = f"; a rerun of matrix {view.rerun_of}" if view.rerun_of is not None else ""
    again += f"; by {view.submitted_by}" if view.submitted_by is not None else ""
    eta = f"; {time_left(view)}" if view.finished_at is None else ""
    sustained = "" if view.sustained_s is None else f", sustained for {elapsed_text(view.sustained_s)}"
    return f"{shape}{sustained}, {jobs_line(view)}{eta}{again}"


def jobs_line(view: MatrixView) -> str:
    """Return `70 jobs (4 blocks repeated): 69 succeeded, 1 failed`."""
    return f"{plural(view.jobs, 'job')}{repeated_blocks_text(view)}: {counts_text(view.jobs_by_outcome)}"


def rounds_text(view: MatrixSummary) -> str:
    """Return `10 rounds`, or `5 to 40 rounds` where the matrix grows."""
    return plural_range(view.rounds, view.max_rounds, "round")


def time_left(view: MatrixSummary) -> str:
    """Return the time left; of a matrix that grows, at least and at most."""
    return time_left_text(view.eta_s, view.without_eta_names, max_eta_s=view.max_eta_s)


def repeated_blocks_text(view: MatrixView) -> str:
    """Return why there are more jobs than planned; empty if there are not."""
    return f" ({plural(view.repeated_blocks, 'block')} repeated)" if view.repeated_blocks else ""


def progress_line(device: DeviceProgress) -> str:
    """Return `phone-1: 12 of 20, running mobilenet_v2/float32/lite`."""
    ran = device.finished - device.cancelled
    return f"{device_name(device)}: {ran} of {total_text(device)}, {current_work(device)}"


def total_text(device: DeviceProgress) -> str:
    """Return `20`, or `20 to 160` where the matrix grows."""
    return range_text(device.total, device.max_total)


def current_work(device: DeviceProgress) -> str:
    """Return what is running on the device, or why nothing is."""
    if device.finished >= device.max_total:
        return f"{device.cancelled} cancelled" if device.cancelled else "done"
    if device.finished >= device.total:
        return "looking at its rounds"
    if device.current:
        return f"running {device.current}"
    return f"waiting: {device.waiting_for[0]}" if device.waiting_for else "starting the next job"


def is_stuck(view: MatrixView) -> bool:
    """Return whether jobs are left, none is running, and the reasons are known."""
    left = [device for device in view.progress if device.finished < device.total]
    return bool(left) and all(device.waiting_for and not device.current for device in left)


def cancellation(view: MatrixView, device_id: DeviceId | None) -> str:
    """Return what cancelling a matrix, or its part on a device, will do."""
    parts = [progress for progress in view.progress if device_id in (None, progress.device_id)]
    running = [progress for progress in parts if progress.current]
    left = sum(progress.total - progress.finished for progress in parts) - len(running)
    text = f"Cancelling matrix {view.matrix_id} ({view.name}): {plural(left, 'job')} will not start"
    for progress in running:
        text += f"; stopped on {device_name(progress)}: {progress.current}"
    return f"{text}. Finished jobs are kept."


#: The time is the median over rounds of the valid measurements.
cell_table = Listing[CellView](
    name("cell", lambda cell: cell.cell_id),
    name("device", device_name, is_shown=lambda cells: len({cell.device_id for cell in cells}) > 1),
    name("what", lambda cell: cell.label),
    prose("jobs", lambda cell: counts_text(cell.jobs_by_outcome)),
    prose("quality", lambda cell: counts_text(cell.measurements_by_quality)),
    number("time", lambda cell: duration_or_nothing(cell.value_ns)),
)

_metric_table = Listing[tuple[MeasuredCell, MetricView]](
    name(
        "device",
        lambda row: device_name(row[0]),
        is_shown=lambda rows: len({cell.device_id for cell, _ in rows}) > 1,
    ),
    name("cell", lambda row: row[0].label, is_shown=lambda rows: len({row[0].label for row in rows}) > 1),
    name("metric", lambda row: row[1].name),
    number("median", lambda row: quantity_text(row[1].level.median, row[1].unit)),
    number(
        "min to max",
        lambda row: _range_text(row[1]),
        is_shown=lambda rows: any(metric.level.low < metric.level.high for _, metric in rows),
    ),
    prose("better", lambda row: row[1].better),
)


def _range_text(metric: MetricView) -> str:
    low, high = metric.level.low, metric.level.high
    if metric.unit == "bytes":
        return f"{size_text(low)} to {size_text(high)}"
    return f"{low:.4g} to {high:.4g}"


def metric_table(cells: Iterable[MeasuredCell], names: Collection[str] | None = None) -> Table:
    """Return one row for each cell and metric, over rounds: those with these names, or all."""
    return _metric_table(
        (cell, metric) for cell in cells for metric in cell.metrics if names is None or metric.name in names
    )


matrix_table = Listing[MatrixSummary](
    name("matrix", lambda view: view.matrix_id),
    name("submitted", lambda view: local_time_text(view.created_at)),
    name("name", lambda view: view.name),
    number("cells", lambda view: view.cells),
    number("rounds", lambda view: range_text(view.rounds, view.max_rounds)),
    prose("jobs", lambda view: _progress_text(view)),
)

job_table = Listing[JobView](
    name("job", lambda job: job.job_id),
    name("device", device_name),
    name("round", lambda job: round_text(job.round, job.block, job.repeat).removeprefix("round ")),
    name("state", lambda job: job.outcome or job.state),
    name("attempts", lambda job: ", ".join(map(str, job.attempts)) or None),
    prose("what", lambda job: job.label),
    prose("why", lambda job: failure_text(job.message, job.code)),
)


def _progress_text(view: MatrixSummary) -> str:
    parts = [
        f"{view.state}: {counts_text(view.jobs_by_outcome)}",
        f"{plural(view.rejected, 'cell')} rejected" if view.rejected else "",
        time_left(view) if view.finished_at is None else "",
        f"a rerun of matrix {view.rerun_of}" if view.rerun_of is not None else "",
        f"{plural(view.not_queued, 'job')} not queued yet" if view.not_queued else "",
    ]
    return "; ".join(filter(None, parts))


def failures(view: MatrixView) -> Iterator[str]:
    """Return one line for each cell with problems, and for rejected cells that do not want a file."""
    yield from (_failure_text(cell) for cell in view.cell_list if cell.problems)
    yield from rejections(view, without_missing=True)


def _failure_text(cell: CellView) -> str:
    """Return the counts of failures of a cell, and the most frequent reason."""
    failed = {word: times for word, times in cell.jobs_by_outcome.items() if word not in _HEALTHY_STATES}
    left_out = {word: times for word, times in cell.measurements_by_quality.items() if word != Quality.VALID}
    worst = max(cell.problems, key=lambda problem: cell.problems[problem])
    more = len(cell.problems) - 1
    others = f"; {plural(more, 'other reason')}" if more else ""
    return f"{device_name(cell)}, {cell.label}: {counts_text({**failed, **left_out})} ({worst}{others})"


def log_hint(jobs: Sequence[JobView]) -> str | None:
    """Return how to see the output of the last failed run, else of the last run; None without runs."""
    attempted = [job for job in jobs if job.attempts]
    failed = [job for job in attempted if job.outcome not in (None, Outcome.SUCCEEDED)]
    if not attempted:
        return None
    return f"Output of a run: {farm_command()} attempt show {(failed or attempted)[-1].attempts[-1]}"
