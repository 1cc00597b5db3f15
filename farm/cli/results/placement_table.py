"""The table of placements, with requested configurations as rows and devices as columns."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from farm.cli.shell.formatting import EMPTY_CELL
from farm.core.matrices.matrix import value_text
from farm.core.runs.measurement import Quality
from farm.wire.documents.results.placements import SeriesPlacementView

_STYLES = {Quality.FALLBACK: "red", Quality.UNPROVEN: "yellow"}
_Row = tuple[str, str, str]


def placement_table(views: Sequence[SeriesPlacementView]) -> Table:
    """Return a table of placements; those without a proof of the backend are marked."""
    devices = sorted({str(view.device_id) for view in views})
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("what", "backend", "settings", *devices):
        table.add_column(heading, overflow="fold")
    by_row: dict[_Row, dict[str, SeriesPlacementView]] = {}
    for view in views:
        by_row.setdefault(_row(view), {})[str(view.device_id)] = view
    for row, by_device in sorted(by_row.items()):
        table.add_row(*row, *(_place(by_device.get(device)) for device in devices))
    return table


def placement_text(view: SeriesPlacementView) -> str:
    """Return `npu 71/71`, `cpu: fallback`, `unknown: unproven`."""
    mark = f": {view.quality}" if view.quality in _STYLES else ""
    return f"{view.words}{mark}"


def _row(view: SeriesPlacementView) -> _Row:
    recipe = view.recipe
    kind = (
        [recipe.precision, recipe.format, *([recipe.target] if recipe.target != "cpu" else [])]
        if recipe
        else []
    )
    settings = ", ".join(f"{name}={value_text(value)}" for name, value in sorted(view.settings.items()))
    return " ".join(filter(None, [view.model or view.harness, *kind])), view.backend, settings or EMPTY_CELL


def _place(view: SeriesPlacementView | None) -> Text:
    if view is None:
        return Text(EMPTY_CELL)
    return Text(placement_text(view), style=_STYLES.get(view.quality, ""))
