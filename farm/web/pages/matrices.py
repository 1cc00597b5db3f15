"""Pages of matrices: the list, and one with its cells by device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import MatrixId
from farm.presentation.cell_state import CellState, cell_state, progress_text, refusal_text
from farm.presentation.labels import device_name, short_labels
from farm.presentation.text import past_moment, time_left_text
from farm.services.jobs.pending_reasons import matrix_waiting
from farm.services.matrices.views import list_matrix_summaries, matrix_view
from farm.store.matrices.search import MatrixFilter
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import Count
from farm.wire.documents.matrices.matrices import CellView, MatrixSummary

router = APIRouter(route_class=PageRoute)

_PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """A cell of a matrix as the grid shows it."""

    view: CellView
    state: CellState
    progress: str
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellGrid:
    """The cells of a matrix: a row for each label, a column for each device."""

    devices: Sequence[str]
    #: Label, and the cell on each device; None where the matrix has none.
    rows: Sequence[tuple[str, Sequence[GridCell | None]]]


def cell_grid(cells: Sequence[CellView]) -> CellGrid:
    """Return cells by label and device, in the order of the matrix."""
    labels = short_labels(cell.label for cell in cells)
    devices = list(dict.fromkeys(device_name(cell) for cell in cells))
    by_row: dict[str, dict[str, GridCell]] = {}
    for cell in cells:
        name = labels[cell.label] + (" (A/A)" if cell.replica > 1 and "(A/A)" not in cell.label else "")
        by_row.setdefault(name, {})[device_name(cell)] = GridCell(
            view=cell, state=cell_state(cell), progress=progress_text(cell), refusal=refusal_text(cell)
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
    part: str | None = None,
    name: Annotated[str, Query(max_length=256)] = "",
    since: Annotated[str, Query(max_length=40)] = "",
    mine: bool = False,
    before: Count | None = None,
) -> Response:
    """Show matrices, the newest first."""
    which = MatrixFilter(
        since=past_moment(since or None, option="since"),
        name=name or None,
        submitted_by=caller.actor if mine else None,
    )

    async def rows() -> Mapping[str, Any]:
        matrices = await farm.database.read_async(
            farm.bind(list_matrix_summaries),
            before=None if before is None else MatrixId(before),
            limit=_PAGE,
            which=which,
        )
        return {"matrices": matrices, "next": matrices[-1].matrix_id if len(matrices) == _PAGE else None}

    return await render_page(
        request,
        "matrices",
        caller=caller,
        part=part,
        parts={"rows": rows},
        title="Matrices",
        name=name,
        since=since,
        mine=mine,
        before=before,
    )


@router.get("/matrices/{matrix_id}")
async def get_matrix(
    request: Request, matrix_id: Count, caller: Viewer, farm: Farm, part: str | None = None
) -> Response:
    """Show a matrix: its progress, why it waits, and each of its cells on each device."""
    view = await farm.database.read_async(farm.bind(matrix_view), MatrixId(matrix_id))

    async def progress() -> Mapping[str, Any]:
        waiting = await farm.database.read_async(matrix_waiting, view.matrix_id)
        return {"matrix": view, "eta": eta_text(view), "waiting": waiting}

    async def cells() -> Mapping[str, Any]:
        return {"matrix": view, "grid": cell_grid(view.cell_list)}

    return await render_page(
        request,
        "matrices/one",
        caller=caller,
        part=part,
        parts={"progress": progress, "cells": cells},
        title=f"Matrix {matrix_id}: {view.name}",
    )
