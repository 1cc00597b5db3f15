"""`farm matrix plan`: show cells, devices and time of a matrix before anything is queued."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json, print_notice

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from farm.wire.documents.matrices.plans import MatrixPlanView, PlannedDevice, RejectedGroup

#: Cells named for each reason; the rest are counted.
_CELLS_SHOWN = 8


def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A matrix in YAML.")], as_json: Json = False
) -> None:
    """Show the plan of a matrix: cells, devices, rejected cells with reasons, and the estimated time.

    Nothing is queued. Times are medians of similar runs on this farm. Without such runs the time-out is used,
    and the estimate is marked as an upper bound.

    Example: farm matrix plan examples/demo.yaml
    """
    from farm.cli.matrices.file import send_file

    with connect() as farm:
        view = send_file(file, farm.plan_matrix)
    if as_json:
        print_json(view.model_dump(mode="json"))
        return
    out().print(plan_report(view))
    print_notice(f"Nothing is queued yet: farm matrix submit {quote(str(file))}")


def plan_report(view: "MatrixPlanView") -> "RenderableType":
    """Return the whole plan."""
    from rich.console import Group
    from rich.text import Text

    return Group(
        Text(_headline(view), style="bold"),
        *map(Text, _comparison(view)),
        Text(""),
        _device_table(view.devices),
        *map(Text, _estimate_sources(view.devices)),
        *map(Text, _left_out_lines(view)),
        Text(""),
        *map(Text, _cells(view)),
        *map(Text, _rejected(view.rejected)),
        Text(""),
        Text(_time(view)),
    )


def _headline(view: "MatrixPlanView") -> str:
    from farm.cli.shell.formatting import plural

    devices = plural(len(view.devices), "device")
    return (
        f"{view.name}: {plural(view.cells, 'cell')} on {devices} x {plural(view.rounds, 'round')}"
        f" = {plural(view.jobs, 'job')} with {view.harness}"
    )


def _comparison(view: "MatrixPlanView") -> Iterator[str]:
    from farm.core.matrices.matrix import key_text

    if view.baseline is None:
        yield "no comparison: the matrix names no baseline"
        return
    means = (
        "one cell for all"
        if view.baseline_kind == "absolute"
        else "each cell to the same one with these values"
    )
    yield f"compared to {key_text(view.baseline)}, {view.baseline_kind}: {means}"
    if view.uncompared:
        yield f"not compared, as their baseline cannot run: {_names_text(view.uncompared)}"


def _device_table(devices: "Sequence[PlannedDevice]") -> "Table":
    from farm.cli.shell.formatting import device_kind
    from farm.cli.shell.tables import add_row, new_table
    from farm.core.base.units import elapsed_text

    table = new_table(
        names=("device",),
        words=("model",),
        numbers=("cells", "jobs", "device time", "queued ahead"),
        prose=("now",),
    )
    for device in devices:
        name = device.device_id if device.label is None else f"{device.label} ({device.device_id})"
        kind = device_kind(device.device_model, device.soc, virtual=device.virtual)
        time = ("at most " if _is_bound(device) else "") + elapsed_text(device.device_s)
        numbers = (str(device.cells), str(device.jobs), time, str(device.jobs_ahead))
        now = device.waiting_for[0] if device.waiting_for else "ready"
        add_row(table, name, kind, *numbers, now)
    return table


def _is_bound(device: "PlannedDevice") -> bool:
    from farm.core.matrices.estimate import EstimateBasis

    return bool(device.cells_by_basis.get(EstimateBasis.TIMEOUT))


def _estimate_sources(devices: "Sequence[PlannedDevice]") -> Iterator[str]:
    """Return the basis of the device times, with the number of cells for each."""
    from farm.cli.shell.formatting import plural

    cells_by_basis: Counter[str] = Counter()
    for device in devices:
        cells_by_basis.update({str(basis): cells for basis, cells in device.cells_by_basis.items()})
    for basis, cells in cells_by_basis.items():
        yield f"device time of {plural(cells, 'cell')} from {basis}"


def _left_out_lines(view: "MatrixPlanView") -> Iterator[str]:
    for device in view.left_out:
        yield f"left out: {device.device_id} ({device.device_model}), {device.reason}"


def _cells(view: "MatrixPlanView") -> Iterator[str]:
    """Return the cells of all devices, each name once, with its baseline."""
    named = dict.fromkeys((cell.label, cell.baseline, cell.is_baseline) for cell in view.cell_list)
    for label, baseline, is_baseline in named:
        to = f" against {baseline}" if baseline else ", a baseline" if is_baseline else ""
        yield f"cell: {label}{to}"


def _rejected(groups: "Sequence[RejectedGroup]") -> Iterator[str]:
    from farm.core.matrices.matrix import RejectionKind

    for group in groups:
        word = "excluded" if group.rejection is RejectionKind.EXCLUDED else "cannot run"
        where = f" on {', '.join(group.device_ids)}" if group.device_ids else ""
        hint = f" (hint: {group.hint})" if group.hint else ""
        yield f"{word}{where}: {_names_text(group.labels)}: {group.reason}{hint}"


def _names_text(labels: "Sequence[str]") -> str:
    more = len(labels) - _CELLS_SHOWN
    return ", ".join(labels[:_CELLS_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _time(view: "MatrixPlanView") -> str:
    from farm.core.base.units import elapsed_text

    about = "at most " if view.is_upper_bound else "about "
    text = f"{about}{elapsed_text(view.device_s)} of device time, {elapsed_text(view.wall_s)} elapsed"
    why = " (time-outs: some of it has never run on this farm)" if view.is_upper_bound else ""
    return f"{text}{why}; not included: waiting for gates, jobs queued ahead, repeated blocks"
