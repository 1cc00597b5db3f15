"""Speedups as a frame, and as the forest plot of the farm's own page."""

from collections.abc import Iterable
from datetime import datetime

from benchfarm.frames.frame import Frame, FrameColumn
from benchfarm.frames.notebook_html import forest_html
from benchfarm.frames.setup_columns import (
    device_columns,
    flag,
    integer,
    milliseconds,
    moment,
    ratio,
    setup_columns,
    text,
)
from farm.wire.documents.matrices.cell_setup import CellSetup
from farm.wire.documents.results.speedups import SpeedupView


class SpeedupFrame(Frame[SpeedupView]):
    """Candidates against their baselines, one row a pair and device."""

    def __init__(self, rows: Iterable[SpeedupView], *, as_of: datetime) -> None:
        super().__init__(list(rows), _COLUMNS, as_of=as_of)

    def _repr_html_(self) -> str:
        """Return a forest plot for each device and model, as the page of the farm draws it."""
        return forest_html(self.rows, as_of=self.as_of)


def _baseline_setup(view: SpeedupView) -> CellSetup:
    return view.baseline_setup


def _quality(view: SpeedupView) -> str:
    left_out = [f"{part.blocks} x {part.side} {part.reason}" for part in view.left_out]
    return f"left out: {', '.join(left_out)}" if left_out else "all counted"


_COLUMNS: tuple[FrameColumn[SpeedupView], ...] = (
    integer("matrix_id"),
    integer("cell_id"),
    integer("baseline_cell_id"),
    *device_columns(),
    text("candidate"),
    text("baseline"),
    *setup_columns(lambda view: view),
    *setup_columns(_baseline_setup, prefix="baseline_"),
    ratio("speedup"),
    ratio("ci_low"),
    ratio("ci_high"),
    text("verdict"),
    text("reason"),
    milliseconds("time_ms", lambda view: view.candidate_ns),
    milliseconds("baseline_time_ms", lambda view: view.baseline_ns),
    milliseconds("difference_ms", lambda view: view.difference_ns),
    milliseconds("min_ms", lambda view: view.candidate_min_ns),
    milliseconds("baseline_min_ms", lambda view: view.baseline_min_ns),
    ratio("margin"),
    ratio("p_value"),
    ratio("detectable"),
    flag("not_slower"),
    flag("aa"),
    text("quality", _quality),
    integer("n", lambda view: view.rounds),
    integer("of", lambda view: view.rounds + view.excluded),
    moment("measured_until"),
)
