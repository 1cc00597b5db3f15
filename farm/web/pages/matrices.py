"""Pages of matrices: the list, and one with its cells by device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import AttemptId, DeviceId, MatrixId
from farm.core.errors import InvalidInput
from farm.core.runs.measurement import CellState
from farm.database.transaction import Tx
from farm.presentation.cell_state import cell_state, progress_text, refusal_text, refusals
from farm.presentation.jobs.pending import PendingReport
from farm.presentation.labels import device_name, short_labels
from farm.presentation.text import time_left_text
from farm.services.jobs.pending_reasons import devices_waiting
from farm.services.matrices.cell_views import CellLine
from farm.services.matrices.views import (
    list_cell_lines,
    list_cell_lines_in_state,
    list_matrix_lines,
    matrix_view,
)
from farm.store.matrices.search import MatrixFilter
from farm.web.http.csv_response import columns_of, csv_response
from farm.web.http.filters import Typed
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import Count
from farm.wire.documents.matrices.matrices import MatrixSummary

router = APIRouter(route_class=PageRoute)

_PAGE = 50
#: Cells of a page: more of them no one reads at once, and each live change sends them again.
_CELLS = 400
#: What needs a look: failed, refused, unsupported, or waiting.
_BUT_VALID = "not valid"
#: Devices of a matrix whose progress is shown together.
_DEVICES = 100
#: Devices of a page of which is said in full why their jobs wait.
_WAITING = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """A cell of a matrix as the grid shows it."""

    view: CellLine
    state: CellState
    progress: str
    #: Problems of a cell that is not valid, each with the last attempt that had it.
    refusals: Sequence[tuple[str, AttemptId | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellGrid:
    """The cells of a matrix: a row for each label, a column for each device."""

    devices: Sequence[str]
    #: Label, and the cell on each device; None where the matrix has none.
    rows: Sequence[tuple[str, Sequence[GridCell | None]]]


def cell_grid(cells: Sequence[CellLine]) -> CellGrid:
    """Return cells by label and device, in the order of the matrix."""
    labels = short_labels(cell.label for cell in cells)
    devices = list(dict.fromkeys(device_name(cell) for cell in cells))
    by_row: dict[str, dict[str, GridCell]] = {}
    for cell in cells:
        name = labels[cell.label] + (" (A/A)" if cell.replica > 1 and "(A/A)" not in cell.label else "")
        state = cell_state(cell)
        by_row.setdefault(name, {})[device_name(cell)] = GridCell(
            view=cell,
            state=state,
            progress=progress_text(cell),
            refusals=() if state is CellState.VALID else tuple(refusals(cell)),
        )
    return CellGrid(
        devices=devices,
        rows=[(name, [row.get(device) for device in devices]) for name, row in by_row.items()],
    )


def eta_text(view: MatrixSummary) -> str | None:
    """Return how long a matrix will take; None once it is finished."""
    if view.finished_at is not None or view.state == "finished":
        return None
    return time_left_text(view.eta_s, view.without_eta_names, max_eta_s=view.max_eta_s)


@router.get("/matrices")
async def get_matrices(
    request: Request,
    caller: Viewer,
    farm: Farm,
    typed: Typed,
    part: str | None = None,
    before: Count | None = None,
) -> Response:
    """Show matrices, the newest first."""

    def rows(tx: Tx) -> Mapping[str, Any]:
        matrices = list_matrix_lines(
            tx.connection,
            farm.counted_matrices,
            before=None if before is None else MatrixId(before),
            limit=_PAGE,
            which=replace(typed.of_matrices or MatrixFilter(), since=typed.begin),
        )
        return {"matrices": matrices, "next": matrices[-1].matrix_id if len(matrices) == _PAGE else None}

    return await render_page(
        request,
        "matrices",
        caller=caller,
        part=part,
        parts={"rows": rows},
        title="Matrices",
        name=typed.name,
        since=typed.since,
        mine=typed.mine,
        before=before,
    )


@router.get("/matrices/{matrix_id}")
async def get_matrix(
    request: Request,
    matrix_id: Count,
    caller: Viewer,
    farm: Farm,
    part: str | None = None,
    after: Annotated[int, Query(ge=-1, le=10**7)] = -1,
    devices: Annotated[str, Query(max_length=128)] = "",
    state: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Show a matrix: its progress, why it waits, and each of its cells on each device."""
    number = MatrixId(matrix_id)
    states = _states(state)

    def progress(tx: Tx) -> Mapping[str, Any]:
        view = matrix_view(
            tx,
            number,
            cells=0,
            counted=farm.counted_matrices,
            devices=(DeviceId(devices), _DEVICES + 1),
        )
        shown = view.progress[:_DEVICES]
        why: dict[str, list[str]] = {}
        if view.state == "running":
            waiting = [own.device_id for own in shown if own.finished < own.total and not own.current]
            report = PendingReport(farm.clock.now())
            why = {
                device.device_id: list(report.device(device))
                for device in devices_waiting(tx.connection, number, waiting[:_WAITING])
            }
        return {
            "matrix": view.model_copy(update={"progress": shown}),
            "title": f"Matrix {matrix_id}: {view.name}",
            "eta": eta_text(view),
            "why": why,
            "further_devices": shown[-1].device_id if len(view.progress) > _DEVICES else None,
        }

    def cells(tx: Tx) -> Mapping[str, Any]:
        if not states:
            page = list_cell_lines(tx.connection, number, after=after, limit=_CELLS)
            return {"grid": cell_grid(page), "next": page[-1].index if len(page) == _CELLS else None}
        page, behind = list_cell_lines_in_state(tx.connection, number, states, after=after, limit=_CELLS)
        return {"grid": cell_grid(page), "next": behind}

    return await render_page(
        request,
        "matrices/one",
        caller=caller,
        part=part,
        parts={"progress": progress, "cells": cells},
        matrix_id=matrix_id,
        after=after,
        state=state,
    )


def _states(text: str) -> frozenset[CellState]:
    """Return the states that a filter means; none: all.

    Raises:
        InvalidInput: there is no such filter.
    """
    if text == _BUT_VALID:
        return frozenset(CellState) - {CellState.VALID}
    if text and text not in [*CellState]:
        raise InvalidInput(
            f"state: `{text}` is none of {', '.join([*CellState, _BUT_VALID])}", hint="choose one of the list"
        )
    return frozenset({CellState(text)} if text else ())


@router.get("/matrices/{matrix_id}/cells.csv")
async def get_cells_csv(
    matrix_id: Count, _: Viewer, farm: Farm, state: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Return the cells of a matrix, or those in a state."""
    number, states = MatrixId(matrix_id), _states(state)

    async def page(last: _CellRow | None) -> list[_CellRow]:
        after = -1 if last is None else last.view.index
        if not states:
            cells = await farm.database.read_async(list_cell_lines, number, after=after)
            return [_CellRow(view=cell) for cell in cells]
        behind: int | None = after
        # An empty page would be the end of the file.
        while behind is not None:
            cells, behind = await farm.database.read_async(
                list_cell_lines_in_state, number, states, after=behind, limit=_CELLS
            )
            if cells:
                return [_CellRow(view=cell) for cell in cells]
        return []

    return await csv_response(f"matrix-{matrix_id}", page, columns_of(*_CSV_COLUMNS))


_CSV_COLUMNS = ("cell_id", "device_id", "device_label", "label", "state", "value_ns", "jobs", "why")


@dataclass(frozen=True, slots=True, kw_only=True)
class _CellRow:
    """A cell as a line of the file."""

    view: CellLine

    @property
    def state(self) -> CellState:
        """Return what came of it."""
        return cell_state(self.view)

    @property
    def why(self) -> str:
        """Return why it has no measurement that counts."""
        return "" if self.state is CellState.VALID else refusal_text(self.view)

    def __getattr__(self, name: str) -> object:
        return getattr(self.view, name)
