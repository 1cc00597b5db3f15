"""Watching a matrix: a bar for each device, what runs there or why nothing does, and how long it takes."""

import time
from collections.abc import Callable, Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from farm.cli.matrices.report import doing, measured_again, progress_line
from farm.cli.shell.formatting import plural, time_left
from farm.cli.shell.next_steps import farm_command
from farm.core.base.units import elapsed_text
from farm.core.errors import FarmTrouble
from farm.wire.documents.matrices.matrices import MatrixView

POLL_S = 1.0
#: Without a terminal a line is written when something ended, and not more often than this.
LINE_EVERY_S = 5.0
#: Phones that take turns at a CPU change places every few seconds: that alone is written so often.
PLACES_EVERY_S = 60.0
#: A farm that is restarted comes back within this; after it the watch ends with its error.
PATIENCE_S = 180.0
#: Whoever watches wonders why nothing happens after this; most runs are over by then.
STILL_S = 120.0

_BAR_WIDTH = 20


def watch_matrix(
    look: Callable[[], MatrixView],
    console: Console,
    *,
    poll_s: float = POLL_S,
    line_every_s: float = LINE_EVERY_S,
    patience_s: float = PATIENCE_S,
) -> MatrixView:
    """Show a matrix until it is finished, asking `look` for it.

    Raises:
        FarmTrouble: the farm went away and did not come back for `patience_s`.
        KeyboardInterrupt: the person wants to go; the matrix goes on.
    """
    looks = _looks(look, poll_s, patience_s)
    return _as_bars(looks, console) if console.is_terminal else _as_lines(looks, console, line_every_s)


def watch_changes(
    look: Callable[[], MatrixView],
    tell: Callable[[MatrixView], None],
    *,
    poll_s: float = POLL_S,
    patience_s: float = PATIENCE_S,
) -> MatrixView:
    """Give `tell` the matrix as it is, after each change, and when it is finished.

    Raises:
        FarmTrouble: the farm went away and did not come back for `patience_s`.
        KeyboardInterrupt: the person wants to go; the matrix goes on.
    """
    told: object = None

    def tell_news(view: MatrixView, _answers: bool, _still_s: float) -> None:
        nonlocal told
        # How long it will take changes with every look.
        news = (view.state, [device.model_copy(update={"eta_s": None}) for device in view.progress])
        if news != told:
            told = news
            tell(view)

    return _each(_looks(look, poll_s, patience_s), tell_news)


Look = tuple[MatrixView, bool, float]
"""The matrix as last seen, whether the farm answers now, and for how many seconds nothing has moved."""


class _Stillness:
    """For how long nothing has begun or ended."""

    def __init__(self) -> None:
        self._seen: object = None
        self._since_s = 0.0

    def note(self, view: MatrixView) -> float:
        """Look at the matrix; the seconds since it last looked otherwise."""
        seen = [(device.finished, device.current) for device in view.progress]
        if seen != self._seen:
            self._seen, self._since_s = seen, time.monotonic()
        return time.monotonic() - self._since_s


def _looks(look: Callable[[], MatrixView], poll_s: float, patience_s: float) -> Iterator[Look]:
    """A look at the matrix every `poll_s`, the last one when it is finished."""
    view, answered_s, stillness = look(), time.monotonic(), _Stillness()
    yield view, True, stillness.note(view)
    while view.finished_at is None:
        time.sleep(poll_s)
        try:
            view = look()
        except FarmTrouble:
            if time.monotonic() - answered_s > patience_s:
                raise
            yield view, False, stillness.note(view)
        else:
            answered_s = time.monotonic()
            yield view, True, stillness.note(view)


def _as_bars(looks: Iterator[Look], console: Console) -> MatrixView:
    with Live(console=console, refresh_per_second=4, transient=False) as live:

        def show(view: MatrixView, answers: bool, still_s: float) -> None:
            live.update(bars(view, answers=answers, still_s=still_s), refresh=True)

        return _each(looks, show)


def _as_lines(looks: Iterator[Look], console: Console, every_s: float) -> MatrixView:
    lines = _ChangedLines(lambda line: console.print(line, markup=False, soft_wrap=True), every_s)
    return _each(looks, lines.look)


def _each(looks: Iterator[Look], tell: Callable[[MatrixView, bool, float], None]) -> MatrixView:
    view, answers, still_s = next(looks)
    tell(view, answers, still_s)
    for view, answers, still_s in looks:
        tell(view, answers, still_s)
    return view


def bars(view: MatrixView, *, answers: bool = True, still_s: float = 0.0) -> RenderableType:
    """One line for each device, and one for the whole."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(width=_BAR_WIDTH)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for device in view.progress:
        bar = ProgressBar(total=max(device.total, 1), completed=device.finished, width=_BAR_WIDTH)
        grid.add_row(Text(device.device_id), bar, f"{device.finished}/{device.total}", Text(doing(device)))
    return Group(grid, Text(status_line(view, answers=answers, still_s=still_s)))


def status_line(view: MatrixView, *, answers: bool = True, still_s: float = 0.0) -> str:
    """How the whole stands: `matrix 3: 12 of 40 jobs, about 2 min 5 s left`."""
    finished = sum(device.finished for device in view.progress)
    total = sum(device.total for device in view.progress)
    said = f"matrix {view.matrix_id}: {finished} of {total} jobs{measured_again(view)}"
    if not answers:
        return f"{said}; the farm does not answer, trying again"
    if view.finished_at is not None:
        return (
            f"{said}, {view.state} after {elapsed_text((view.finished_at - view.created_at).total_seconds())}"
        )
    still = ""
    if still_s >= STILL_S:
        why = f"{farm_command()} matrix why {view.matrix_id}"
        still = f"; nothing began or ended for {elapsed_text(still_s)}: {why}"
    later = f", {plural(view.not_queued, 'job')} to unfold" if view.not_queued else ""
    return f"{said}{later}, {time_left(view.eta_s, view.without_eta)}{still}"


class _ChangedLines:
    """Says what ended, at most every `every_s`, who runs and who waits more rarely, and the end at once."""

    def __init__(self, write: Callable[[str], None], every_s: float) -> None:
        self._write = write
        self._every_s = every_s
        self._said: object = None
        self._places: object = None
        self._said_at_s = float("-inf")

    def look(self, view: MatrixView, answers: bool, still_s: float) -> None:
        news = ([(each.finished, each.total) for each in view.progress], answers, still_s >= STILL_S)
        quiet_s = time.monotonic() - self._said_at_s
        is_due = quiet_s >= self._every_s and news != self._said
        has_moved = quiet_s >= max(self._every_s, PLACES_EVERY_S) and view.progress != self._places
        if is_due or has_moved or (view.finished_at is not None and news != self._said):
            self._said, self._places, self._said_at_s = news, view.progress, time.monotonic()
            devices = [progress_line(device) for device in view.progress if view.finished_at is None]
            line = status_line(view, answers=answers, still_s=still_s)
            self._write(" | ".join([line, *devices]))
