"""One matrix in words: how far it is, what went wrong, what got no jobs, and the times so far."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.render import add_row, listing
from farm.cli.words import counts, duration_or_nothing, joined, plural
from farm.core.units import elapsed_text
from farm.wire.views import CellView, DeviceProgress, MatrixView


def matrix_report(view: MatrixView) -> RenderableType:
    """Everything about one matrix."""
    parts: list[RenderableType] = [Text(headline(view), style="bold"), Text(_summary(view))]
    if view.finished_at is None:
        parts += [Text(progress_line(device)) for device in view.progress]
    parts += [Text(""), cell_table(view.cell_list)]
    parts += [Text(line) for line in failures(view)]
    return Group(*parts)


def headline(view: MatrixView) -> str:
    return f"matrix {view.matrix_id} ({view.name}): {view.state}"


def _summary(view: MatrixView) -> str:
    shape = f"{plural(view.cells, 'cell')} x {plural(view.rounds, 'round')} with {view.harness}"
    eta = f"; about {elapsed_text(view.eta_s)} left" if view.eta_s is not None else ""
    return f"{shape}, {plural(view.jobs, 'job')}: {counts(view.jobs_by_outcome)}{eta}"


def progress_line(device: DeviceProgress) -> str:
    """`phone-1: 12 of 20, running mobilenet_v2/float32/lite`."""
    return f"{device.device_id}: {device.finished} of {device.total}, {doing(device)}"


def doing(device: DeviceProgress) -> str:
    """What is running on the device, or why nothing is."""
    if device.finished >= device.total:
        return "done"
    if device.current:
        return f"running {device.current}"
    return f"waiting: {joined(device.waiting_for)}" if device.waiting_for else "next job is about to start"


def cell_table(cells: Sequence[CellView]) -> Table:
    """The time is the median over rounds of the valid measurements."""
    table = listing(names=("device", "cell"), words=("jobs", "measurements"), numbers=("time",))
    for cell in cells:
        jobs, qualities = counts(cell.jobs_by_outcome), counts(cell.measurements_by_quality)
        add_row(table, cell.device_id, cell.label, jobs, qualities, duration_or_nothing(cell.value_ns))
    return table


def failures(view: MatrixView) -> Iterator[str]:
    """What did not work, one line each: cells with problems, cells that got no jobs."""
    for cell in view.cell_list:
        for problem, times in cell.problems.items():
            yield f"{cell.device_id}, {cell.label}: {problem} ({plural(times, 'time')})"
    yield from rejections(view)


def rejections(view: MatrixView) -> Iterator[str]:
    """The cells that got no jobs, one line each."""
    for rejected in view.rejected_list:
        where = f"{rejected.device_id}, " if rejected.device_id else ""
        yield f"{where}{rejected.label}: no jobs, {rejected.reason}"
