"""The report of one matrix: progress, times, failures and rejected cells."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.shell.formatting import (
    counts_text,
    duration_or_nothing,
    matrix_state_text,
    plural,
    time_left_text,
)
from farm.cli.shell.next_steps import farm_command
from farm.cli.shell.tables import add_row, new_table
from farm.core.base.ids import DeviceId
from farm.core.jobs.job import JobState
from farm.core.runs.measurement import Outcome, Quality
from farm.wire.documents.matrices.matrices import CellView, DeviceProgress, JobView, MatrixView

#: States and outcomes of a job that are not failures.
_HEALTHY_STATES = (JobState.QUEUED, JobState.ACTIVE, Outcome.SUCCEEDED)


def matrix_report(view: MatrixView) -> RenderableType:
    """Return the report of one matrix."""
    parts: list[RenderableType] = [Text(headline(view), style="bold"), Text(_summary(view))]
    if view.finished_at is None:
        parts += [Text(progress_line(device)) for device in view.progress]
    parts += [Text(""), cell_table(view.cell_list)]
    if len(view.cell_list) < view.cells:
        parts += [Text(f"Only {len(view.cell_list)} of {plural(view.cells, 'cell')} are shown.")]
    parts += [Text(line) for line in failures(view)]
    return Group(*parts)


def headline(view: MatrixView) -> str:
    """Return the matrix and its state."""
    state = matrix_state_text(view.state, jobs=view.jobs, not_queued=view.not_queued)
    return f"matrix {view.matrix_id} ({view.name}): {state}"


def _summary(view: MatrixView) -> str:
    shape = f"{plural(view.cells, 'cell')} x {plural(view.rounds, 'round')} with {view.harness}"
    again = f"; a rerun of matrix {view.rerun_of}" if view.rerun_of is not None else ""
    again += f"; by {view.submitted_by}" if view.submitted_by is not None else ""
    eta = f"; {time_left_text(view.eta_s, view.without_eta)}" if view.finished_at is None else ""
    return f"{shape}, {jobs_line(view)}{eta}{again}"


def jobs_line(view: MatrixView) -> str:
    """Return `70 jobs (4 blocks repeated): 69 succeeded, 1 failed`."""
    return f"{plural(view.jobs, 'job')}{repeated_blocks_text(view)}: {counts_text(view.jobs_by_outcome)}"


def repeated_blocks_text(view: MatrixView) -> str:
    """Return why there are more jobs than cells x rounds; empty if there are not."""
    blocks = sum(_extra_blocks(view).values())
    return f" ({plural(blocks, 'block')} repeated)" if blocks else ""


def _extra_blocks(view: MatrixView) -> dict[DeviceId, int]:
    """Return the repeated blocks by device; each repeat adds a job to every cell of the block."""
    extra: dict[DeviceId, int] = {}
    for cell in view.cell_list:
        extra[cell.device_id] = max(extra.get(cell.device_id, 0), cell.jobs - view.rounds)
    return extra


def progress_line(device: DeviceProgress) -> str:
    """Return `phone-1: 12 of 20, running mobilenet_v2/float32/lite`."""
    return f"{device.device_id}: {device.finished} of {device.total}, {current_work(device)}"


def current_work(device: DeviceProgress) -> str:
    """Return what is running on the device, or why nothing is."""
    if device.finished >= device.total:
        return "done"
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
        text += f"; stopped on {progress.device_id}: {progress.current}"
    return f"{text}. Finished jobs are kept."


def cell_table(cells: Sequence[CellView]) -> Table:
    """Return a table of cells; the time is the median over rounds of the valid measurements."""
    table = new_table(names=("cell", "device", "what"), words=("jobs", "measurements"), numbers=("time",))
    for cell in cells:
        jobs, qualities = counts_text(cell.jobs_by_outcome), counts_text(cell.measurements_by_quality)
        names = (str(cell.cell_id), cell.device_id, cell.label)
        add_row(table, *names, jobs, qualities, duration_or_nothing(cell.value_ns))
    return table


def failures(view: MatrixView) -> Iterator[str]:
    """Return one line for each cell with problems and each rejected cell."""
    yield from (_failure_text(cell) for cell in view.cell_list if cell.problems)
    yield from rejections(view)


def _failure_text(cell: CellView) -> str:
    """Return the counts of failures of a cell, and the most frequent reason."""
    failed = {word: times for word, times in cell.jobs_by_outcome.items() if word not in _HEALTHY_STATES}
    left_out = {word: times for word, times in cell.measurements_by_quality.items() if word != Quality.VALID}
    worst = max(cell.problems, key=lambda problem: cell.problems[problem])
    more = len(cell.problems) - 1
    others = f"; {plural(more, 'other reason')}" if more else ""
    return f"{cell.device_id}, {cell.label}: {counts_text({**failed, **left_out})} ({worst}{others})"


def rejections(view: MatrixView) -> Iterator[str]:
    """Return one line for each rejected cell, which has no jobs."""
    for rejected in view.rejected_list:
        where = f"{rejected.device_id}, " if rejected.device_id else ""
        yield f"{where}{rejected.label}: no jobs, {rejected.reason}"
    if more := view.rejected - len(view.rejected_list):
        yield f"{more} more: GET /api/v1/matrices/{view.matrix_id}/rejected?after=INDEX returns all"


def log_hint(jobs: Sequence[JobView]) -> str | None:
    """Return how to see the output of the last failed run, else of the last run; None without runs."""
    attempted = [job for job in jobs if job.attempts]
    failed = [job for job in attempted if job.outcome not in (None, Outcome.SUCCEEDED)]
    if not attempted:
        return None
    return f"Output of a run: {farm_command()} attempt show {(failed or attempted)[-1].attempts[-1]}"
