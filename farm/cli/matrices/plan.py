"""`farm matrix plan`: show cells, devices and time of a matrix before anything is queued."""

from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote

from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.matrices.file import send_file
from farm.cli.shell.address import connect
from farm.cli.shell.options import Json, MatrixFile
from farm.cli.shell.output import print_notice, show
from farm.cli.shell.tables import Listing, name, number, prose
from farm.core.matrices.estimate import EstimateBasis
from farm.core.matrices.matrix import RejectionKind, key_text
from farm.presentation.labels import device_name, names_text
from farm.presentation.text import (
    device_kind,
    elapsed_range,
    local_time_text,
    plural,
    plural_range,
    range_text,
)
from farm.wire.documents.matrices.plans import MatrixPlanView, PlannedDevice, RejectedGroup, StandingPlan
from farm.wire.documents.matrices.standing import plannable_spec

_BASIS_TEXT = {
    EstimateBasis.SERIES: "runs of the same series",
    EstimateBasis.DEVICE_MODEL: "runs of that model with these settings on that device model",
    EstimateBasis.HARNESS: "runs of that harness",
    EstimateBasis.TIMEOUT: "timeout_s: nothing like it has run here",
}


def plan(file: MatrixFile, as_json: Json = False) -> None:
    """Show the plan of a matrix: cells, devices, rejected cells with reasons, and the estimated time.

    Nothing is queued. Times are medians of similar runs on this farm. Without such runs the time-out is used,
    and the estimate is marked as an upper bound. A file with `schedule` or `skip` is one for
    `farm matrix stand`: the plan is that of a session, and says how many cells are missing.

    Example: farm matrix plan examples/demo.yaml
    """
    with connect() as farm:
        view = send_file(file, farm.plan_matrix, check=plannable_spec)
    show(view, plan_report, as_json=as_json)
    if not as_json:
        verb = "submit" if view.standing is None else "stand"
        print_notice(f"Nothing is queued yet: farm matrix {verb} {quote(str(file))}")


def plan_report(view: MatrixPlanView) -> RenderableType:
    """Return the whole plan."""
    return Group(
        Text(_headline(view), style="bold"),
        *([] if view.standing is None else [Text(_standing(view.standing))]),
        *map(Text, _comparison(view)),
        *map(Text, _starts(view)),
        Text(""),
        device_table(view.devices),
        *map(Text, _estimate_sources(view.devices)),
        *(
            Text(f"left out: {device_name(left)} ({left.device_model}), {left.reason}")
            for left in view.left_out
        ),
        Text(""),
        *map(Text, _cells(view)),
        *map(Text, _rejected(view.rejected)),
        Text(""),
        Text(_time(view)),
    )


def _headline(view: MatrixPlanView) -> str:
    devices = plural(len(view.devices), "device")
    rounds = plural_range(view.rounds, view.max_rounds, "round")
    starts = sum(cell.starts for cell in view.cell_list)
    more = f", {plural(starts, 'start')}" if starts > view.cells else ""
    return (
        f"{view.name}: {plural(view.cells, 'cell')} on {devices}{more} x {rounds}"
        f" = {plural_range(view.jobs, view.max_jobs, 'job')} with {view.harness}"
    )


def _standing(plan: StandingPlan) -> str:
    at_once = f"{plural(plan.missing, 'cell')} at once" if plan.missing else "nothing at once"
    session = "" if plan.next_due_at is None else f", all cells at {local_time_text(plan.next_due_at)}"
    return f"`farm matrix stand` queues {at_once}{session}"


def _comparison(view: MatrixPlanView) -> Iterator[str]:
    if view.baseline is None:
        yield "no comparison: the matrix names no baseline"
        return
    values = key_text(view.baseline)
    if view.baseline_kind == "absolute":
        yield f"every cell is compared to the one with {values}"
    else:
        yield f"each cell is compared to the same one with {values}"
    if view.uncompared:
        yield f"not compared, as their baseline cannot run: {names_text(view.uncompared)}"


def _starts(view: MatrixPlanView) -> Iterator[str]:
    """Return why a round has more starts than cells; nothing where it has not."""
    first = view.cell_list[0].device_id if view.cell_list else None
    cells = [cell for cell in view.cell_list if cell.device_id == first]
    often = [cell for cell in cells if cell.starts > 1]
    if not often:
        return
    starts = sum(cell.starts for cell in cells)
    baselines = sum(cell.is_baseline for cell in often)
    times = plural_range(min(cell.starts for cell in often), max(cell.starts for cell in often), "time")
    which = "the baseline" if baselines == 1 else f"{baselines} baselines"
    duplicates = (
        "" if len(often) == baselines else " and its duplicate" if baselines == 1 else " and duplicates"
    )
    others = plural(len(cells) - len(often), "other cell")
    where = f" on {device_name(cells[0])}" if len(view.devices) > 1 else ""
    yield f"{starts} starts a round{where}: {others}, {which}{duplicates} {times}"


#: The devices of a plan with their work.
device_table = Listing[PlannedDevice](
    name("device", device_name),
    prose("model", lambda view: device_kind(view.device_model, view.soc, virtual=view.virtual)),
    number("cells", lambda view: view.cells),
    number("jobs", lambda view: range_text(view.jobs, view.max_jobs)),
    number("device time", lambda view: f"{_bound(view)}{elapsed_range(view.device_s, view.max_device_s)}"),
    number("queued ahead", lambda view: view.jobs_ahead),
    prose("now", lambda view: view.waiting_for[0] if view.waiting_for else "ready"),
)


def _bound(device: PlannedDevice) -> str:
    return "at most " if device.cells_by_basis.get(EstimateBasis.TIMEOUT) else ""


def _estimate_sources(devices: Sequence[PlannedDevice]) -> Iterator[str]:
    """Return the basis of the device times, with the number of cells for each."""
    cells_by_basis: Counter[EstimateBasis] = Counter()
    for device in devices:
        cells_by_basis.update(device.cells_by_basis)
    for basis, cells in cells_by_basis.items():
        yield f"device time of {plural(cells, 'cell')} from {_BASIS_TEXT[basis]}"


def _cells(view: MatrixPlanView) -> Iterator[str]:
    """Return the cells of all devices, each name once, with its baseline."""
    named = dict.fromkeys((cell.label, cell.baseline, cell.is_baseline) for cell in view.cell_list)
    for label, baseline, is_baseline in named:
        to = f" against {baseline}" if baseline else ", a baseline" if is_baseline else ""
        yield f"cell: {label}{to}"


def _rejected(groups: Sequence[RejectedGroup]) -> Iterator[str]:
    for group in groups:
        word = "excluded" if group.rejection is RejectionKind.EXCLUDED else "cannot run"
        where = f" on {', '.join(group.device_names)}" if group.device_ids else ""
        hint = f" (hint: {group.hint})" if group.hint else ""
        yield f"{word}{where}: {names_text(group.labels)}: {group.reason}{hint}"


def _time(view: MatrixPlanView) -> str:
    about = "at most " if view.is_upper_bound else "about "
    device = elapsed_range(view.device_s, view.max_device_s)
    text = f"{about}{device} of device time, {elapsed_range(view.wall_s, view.max_wall_s)} elapsed"
    why = " (time-outs: some of it has never run on this farm)" if view.is_upper_bound else ""
    return f"{text}{why}; not included: waiting for gates, jobs queued ahead, repeated blocks"
