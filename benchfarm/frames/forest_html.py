"""The forest plots of speedups as HTML, by the template and the chart of the farm's own page."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import farm.web
from farm.core.base.units import ratio_text
from farm.core.results.statistics.verdict import verdict_text
from farm.presentation.labels import device_name
from farm.presentation.speedup_blocks import (
    blocks_by_device,
    by_cell,
    row_name,
    setup_text,
    with_short_labels,
)
from farm.presentation.text import interval_text
from farm.web.charts.forest import forest_plot
from farm.web.http.verdict_marks import verdict_class, verdict_glyph
from farm.wire.documents.matrices.matrices import SpeedupView


def forest_html(views: Iterable[SpeedupView], *, as_of: datetime) -> str:
    """Return a forest plot for each device, model and matrix, with its numbers."""
    blocks = []
    for block in blocks_by_device(by_cell(views)):
        rows = with_short_labels(block)
        has_one_baseline = len({view.baseline for view in rows}) == 1
        baseline = f"; baseline {rows[0].baseline}" if has_one_baseline else ""
        blocks.append(
            {
                "device": device_name(rows[0]),
                "about": f"{setup_text(block)}{baseline}",
                "rows": [(row_name(view, name_baseline=not has_one_baseline), view) for view in rows],
                "forest": forest_plot(rows),
            }
        )
    template = _environment().get_template("speedups/frame.html")
    return template.render(blocks=blocks, as_of=f"{as_of:%Y-%m-%d %H:%M:%S} UTC")


def _environment() -> Environment:
    folder = Path(farm.web.__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ratio": ratio_text,
        "verdict_class": verdict_class,
        "verdict_glyph": verdict_glyph,
        "verdict_text": verdict_text,
    }
    environment.globals["interval_text"] = interval_text
    return environment
