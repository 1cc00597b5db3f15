"""`farm placement`: show which hardware each variant ran on, by device."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from farm.cli.shell.address import connect
from farm.cli.shell.next_steps import farm_command
from farm.cli.shell.options import Json, MatrixArgument, MatrixOption, selected_matrix
from farm.cli.shell.output import print_data, print_json, print_notice
from farm.cli.shell.tables import Column, Listing, prose
from farm.core.base.ids import DeviceId
from farm.core.matrices.matrix import value_text
from farm.core.runs.measurement import Quality
from farm.presentation.labels import device_name
from farm.presentation.text import EMPTY_CELL
from farm.wire.documents.results.results import PlacedSeries

_STYLES = {Quality.FALLBACK: "red", Quality.UNPROVEN: "yellow"}
_Row = tuple[str, str, str]
_DeviceRow = tuple[_Row, dict[DeviceId, PlacedSeries]]


def placement_table(views: Sequence[PlacedSeries]) -> Table:
    """Return a table of placements; those without a proof of the backend are marked."""
    names = {view.device_id: device_name(view) for view in views}
    by_row: dict[_Row, dict[DeviceId, PlacedSeries]] = {}
    for view in views:
        by_row.setdefault(_row(view), {})[view.device_id] = view
    table = Listing[_DeviceRow](
        prose("what", lambda row: row[0][0]),
        prose("backend", lambda row: row[0][1]),
        prose("settings", lambda row: row[0][2]),
        *(_device_column(device_id, name) for device_id, name in sorted(names.items())),
    )
    return table(sorted(by_row.items()))


def _device_column(device_id: DeviceId, name: str) -> Column[_DeviceRow]:
    return prose(name, lambda row: _place(row[1].get(device_id)))


def placement_text(view: PlacedSeries) -> str:
    """Return `npu 71/71`, `cpu: fallback`, `unknown: unproven`, `cpu, capped 3 of 20`."""
    mark = f": {view.quality}" if view.quality in _STYLES else ""
    capped = f", capped {view.capped} of {view.runs}" if view.capped else ""
    return f"{view.words}{mark}{capped}"


def _row(view: PlacedSeries) -> _Row:
    recipe = view.recipe
    target = [] if recipe is None or recipe.target == "cpu" else [recipe.target]
    kind = [] if recipe is None else [recipe.precision, recipe.format, *target]
    settings = ", ".join(f"{name}={value_text(value)}" for name, value in sorted(view.settings.items()))
    return " ".join(filter(None, [view.model or view.harness, *kind])), view.backend, settings or EMPTY_CELL


def _place(view: PlacedSeries | None) -> Text | None:
    return None if view is None else Text(placement_text(view), style=_STYLES.get(view.quality, ""))


def placement(
    number: MatrixArgument = None,
    matrix: MatrixOption = None,
    device: Annotated[str | None, typer.Option(help="Only this device.")] = None,
    as_json: Json = False,
) -> None:
    """Show which hardware ran each variant, backend and settings, with a column for each device.

    `dsp 136/139, cpu 3` counts the nodes of the model. `fallback` marks runs on the CPU although another
    backend was requested; `unproven` marks runs without a proof of the placement. `capped 3 of 20` counts
    the runs whose clock was limited while they were measured.

    Example: farm placement 3
    """
    matrix_id = selected_matrix(number, matrix)
    with connect() as farm:
        views = farm.placements(matrix_id=matrix_id, device=device)
    if as_json:
        print_json(views)
    elif not views:
        print_notice("No measurements yet: `farm matrix list` shows the progress of matrices.")
    else:
        print_data(placement_table(views))
        newest = max(views, key=lambda view: view.measured_at)
        print_notice(f"Proof of a run: {farm_command()} attempt show {newest.attempt_id}")
