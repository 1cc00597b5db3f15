"""Reports: pages as one self-contained file, to send and to keep."""

import base64
import hashlib
from functools import cache

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import MatrixId
from farm.presentation.speedup_notes import LEGEND, discovered_rows
from farm.services.matrices.cell_views import CellLine
from farm.services.matrices.views import list_cell_lines, matrix_view
from farm.services.results.speedups.listing import PAGE, list_speedups
from farm.web.charts.forest_blocks import speedup_blocks
from farm.web.http.rendering import STATIC_FOLDER
from farm.web.http.templates import TEMPLATES
from farm.web.pages.matrices import cell_grid, eta_text
from farm.wire.base import Count
from farm.wire.documents.results.speedups import SpeedupView

#: Cells of a report: a browser shows no more of them at once. Comparisons are shown all.
_CELLS = 10_000

#: Errors are problem documents: `farm report` asks here.
router = APIRouter(include_in_schema=False)


@router.get("/reports/matrices/{matrix_id}")
async def get_matrix_report(request: Request, matrix_id: Count, _: Viewer, farm: Farm) -> HTMLResponse:
    """Return a matrix with its cells and comparisons as one file, without scripts and further requests."""
    number = MatrixId(matrix_id)
    view = await farm.database.read_async(farm.bind(matrix_view), number, cells=0)
    speedups: list[SpeedupView] = []
    while page := await farm.database.read_async(
        list_speedups, matrix_id=number, after=speedups[-1].cell_id if speedups else None, limit=PAGE
    ):
        speedups += page
    cells: list[CellLine] = []
    while len(cells) < _CELLS and (
        more := await farm.database.read_async(
            list_cell_lines, number, after=cells[-1].index if cells else -1, limit=_CELLS - len(cells)
        )
    ):
        cells += more
    html = TEMPLATES.get_template("matrices/one/report.html").render(
        matrix=view,
        eta=eta_text(view),
        why={},
        further_devices=None,
        grid=cell_grid(cells),
        cells_left_out=view.cells - len(cells),
        blocks=speedup_blocks(speedups),
        discoveries=discovered_rows(speedups),
        legend=LEGEND,
        style=_style(),
        origin=str(request.base_url),
        made_at=farm.clock.now(),
        # The report is of all comparisons, and has no buttons.
        next=None,
        state="",
        caller=None,
        here="",
        query="",
    )
    return HTMLResponse(
        html,
        headers={
            "Content-Security-Policy": f"default-src 'none'; style-src '{_style_source()}'; base-uri 'self'",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, no-cache",
            "Content-Disposition": f'attachment; filename="matrix-{matrix_id}.html"',
        },
    )


@cache
def _style() -> str:
    return (STATIC_FOLDER / "style.css").read_text()


@cache
def _style_source() -> str:
    """Return the source of the style for a content security policy: its digest."""
    return f"sha256-{base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()}"
