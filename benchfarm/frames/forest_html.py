"""The forest plots of speedups as HTML, by the template and the chart of the farm's own page."""

from collections.abc import Iterable
from datetime import datetime

from farm.web.charts.forest_blocks import speedup_blocks
from farm.web.http.templates import TEMPLATES
from farm.wire.documents.matrices.matrices import SpeedupView


def forest_html(views: Iterable[SpeedupView], *, as_of: datetime) -> str:
    """Return a forest plot for each device, model and matrix, with its numbers."""
    template = TEMPLATES.get_template("speedups/frame.html")
    return template.render(blocks=speedup_blocks(views), as_of=f"{as_of:%Y-%m-%d %H:%M:%S} UTC")
