"""Answers as HTML for notebooks, by the templates and the charts of the farm's own pages."""

from collections.abc import Sequence
from datetime import datetime

from farm.presentation.changes import change_row
from farm.web.charts.forest_blocks import speedup_blocks
from farm.web.charts.series_trends import series_trends
from farm.web.http.templates import TEMPLATES
from farm.wire.documents.results.changes import ChangeView
from farm.wire.documents.results.history import SeriesHistory
from farm.wire.documents.results.speedups import SpeedupView

#: Series that are drawn, and changes that are listed; the frame has all.
_SERIES, _CHANGES = 12, 50


def forest_html(views: Sequence[SpeedupView], *, as_of: datetime) -> str:
    """Return a forest plot for each device, model and matrix, with its numbers."""
    return _html("speedups/frame.html", as_of, blocks=speedup_blocks(views))


def trends_html(histories: Sequence[SeriesHistory], *, as_of: datetime) -> str:
    """Return the trends of series, of speedup and of time."""
    left_out = len(histories) - len(histories[:_SERIES])
    trends = series_trends(histories[:_SERIES])
    return _html("history/frame.html", as_of, trends=trends, left_out=left_out)


def changes_html(changes: Sequence[ChangeView], *, as_of: datetime) -> str:
    """Return changes as a table."""
    listed = [(change, change_row(change)) for change in changes[:_CHANGES]]
    left_out = len(changes) - len(listed)
    return _html("history/changes/frame.html", as_of, changes=listed, left_out=left_out)


def _html(template: str, as_of: datetime, **values: object) -> str:
    return TEMPLATES.get_template(template).render(as_of=f"{as_of:%Y-%m-%d %H:%M:%S} UTC", **values)
