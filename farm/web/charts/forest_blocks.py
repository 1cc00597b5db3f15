"""Comparisons in blocks, each with its forest plot and notes: of one device, or of one candidate on many."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farm.presentation.labels import device_name
from farm.presentation.speedup_blocks import (
    blocks_by_comparison,
    blocks_by_device,
    by_cell,
    row_name,
    setup_text,
    with_short_labels,
)
from farm.presentation.speedup_notes import notes, work_notes
from farm.web.charts.forest import Forest, forest_of, forest_plot
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView
from farm.wire.documents.results.speedups import SpeedupView

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


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBlock:
    """One candidate against its baseline over devices, a row for each device or group of them."""

    first: GroupSpeedupView
    #: The lowest speedup first.
    rows: Sequence[GroupSpeedupView]
    #: Over all devices, those that are no phones apart.
    overall: Sequence[GroupSpeedupView]
    #: Of rows and overall.
    forest: Forest
    notes: Sequence[str]
    #: Rows before these ones, and rows in total.
    before: int
    total: int

    @property
    def drawn(self) -> Sequence[GroupSpeedupView]:
        """Return the rows with those over all devices below them."""
        return [*self.rows, *self.overall]


def group_blocks(
    groups: Iterable[GroupSpeedupView], overall: Iterable[GroupSpeedupView], *, before: int, limit: int
) -> list[GroupBlock]:
    """Return comparisons over devices by candidate, with some of the rows of each.

    Args:
        groups: the rows.
        overall: the same comparisons over all devices.
        before: so many rows of each candidate are left out at the beginning.
        limit: rows of each candidate at most.
    """
    over_all: dict[tuple[str | None, str, str, str], list[GroupSpeedupView]] = {}
    for view in overall:
        over_all.setdefault(_compared(view), []).append(view)
    blocks = []
    for block in blocks_by_comparison(groups):
        rows = sorted(block, key=lambda view: view.speedup)
        shown = rows[before : before + limit]
        bottom = [] if rows[0].by is GroupBy.ALL else over_all.get(_compared(rows[0]), [])
        estimates = [(view.speedup, view.ci_low, view.ci_high) for view in (*shown, *bottom)]
        blocks.append(
            GroupBlock(
                first=rows[0],
                rows=shown,
                overall=bottom,
                forest=forest_of(estimates),
                notes=list(work_notes(rows, width=_NOTE_WIDTH)),
                before=before,
                total=len(rows),
            )
        )
    return blocks


def _compared(view: GroupSpeedupView) -> tuple[str | None, str, str, str]:
    return view.model, view.harness, view.candidate, view.baseline
