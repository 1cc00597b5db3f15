"""Comparisons in blocks: one device, model, harness and matrix each, with its forest plot and notes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farm.presentation.labels import device_name
from farm.presentation.speedup_blocks import (
    blocks_by_device,
    by_cell,
    row_name,
    setup_text,
    with_short_labels,
)
from farm.presentation.speedup_notes import notes
from farm.web.charts.forest import Forest, forest_plot
from farm.wire.documents.matrices.matrices import SpeedupView

#: The browser wraps notes.
_NOTE_WIDTH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupBlock:
    """The comparisons of one model on one device."""

    device: str
    first: SpeedupView
    #: Model, common words, harness and matrix.
    about: str
    rows: Sequence[tuple[str, SpeedupView]]
    has_one_baseline: bool
    forest: Forest
    notes: Sequence[str]


def speedup_blocks(views: Iterable[SpeedupView]) -> list[SpeedupBlock]:
    """Return comparisons by device, model, harness and matrix."""
    blocks = []
    for block in blocks_by_device(by_cell(views)):
        rows = with_short_labels(block)
        has_one_baseline = len({view.baseline for view in rows}) == 1
        blocks.append(
            SpeedupBlock(
                device=device_name(rows[0]),
                first=rows[0],
                about=setup_text(block),
                rows=[(row_name(view, name_baseline=not has_one_baseline), view) for view in rows],
                has_one_baseline=has_one_baseline,
                forest=forest_plot(rows),
                notes=list(notes(rows, width=_NOTE_WIDTH)),
            )
        )
    return blocks
