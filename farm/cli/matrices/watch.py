"""Watching a matrix: a bar for each device, what runs there or why nothing does, and how long it takes."""

import time
from collections.abc import Callable, Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from farm.cli.matrices.report import current_work, progress_line, repeated_blocks_text
from farm.cli.shell.formatting import plural, time_left_text
from farm.cli.shell.next_steps import farm_command
from farm.core.base.units import elapsed_text
from farm.core.errors import FarmFault
from farm.wire.documents.matrices.matrices import MatrixView

POLL_S = 1.0
#: Without a terminal a line is written when something ended, and not more often than this.
LINE_EVERY_S = 5.0
#: Phones that take turns at a CPU change places every few seconds: that alone is written so often.
STATUS_EVERY_S = 60.0
#: A farm that is restarted comes back within this; after it the watch ends with its error.
AWAY_TIMEOUT_S = 180.0
#: Whoever watches wonders why nothing happens after this; most runs are over by then.
IDLE_NOTICE_S = 120.0

_BAR_WIDTH = 20


def watch_matrix(
    look: Callable[[], MatrixView],
    console: Console,
    *,
    poll_s: float = POLL_S,
    line_every_s: float = LINE_EVERY_S,
    patience_s: float = AWAY_TIMEOUT_S,
) -> MatrixView:
    """Show a matrix until it is finished, asking `look` for it.

    Raises:
        FarmFault: the farm went away and did not come back for `patience_s`.
        KeyboardInterrupt: the person wants to go; the matrix goes on.
    """
    looks = _poll(look, poll_s, patience_s)
    return _show_bars(looks, console) if console.is_terminal else _show_lines(looks, console, line_every_s)


def watch_changes(
    look: Callable[[], MatrixView],
    tell: Callable[[MatrixView], None],
    *,
    poll_s: float = POLL_S,
    patience_s: float = AWAY_TIMEOUT_S,
) -> MatrixView:
    """Give `tell` the matrix as it is, after each change, and when it is finished.

    Raises:
        FarmFault: the farm went away and did not come back for `patience_s`.
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

    return _for_each_poll(_poll(look, poll_s, patience_s), tell_news)


Poll = tuple[MatrixView, bool, float]
"""The matrix as last seen, whether the farm answers now, and for how many seconds nothing has moved."""


class _IdleTimer:
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


def _poll(look: Callable[[], MatrixView], poll_s: float, patience_s: float) -> Iterator[Poll]:
    """A look at the matrix every `poll_s`, the last one when it is finished."""
    view, answered_s, stillness = look(), time.monotonic(), _IdleTimer()
    yield view, True, stillness.note(view)
    while view.finished_at is None:
        time.sleep(poll_s)
        try:
            view = look()
        except FarmFault:
            if time.monotonic() - answered_s > patience_s:
                raise
            yield view, False, stillness.note(view)
        else:
            answered_s = time.monotonic()
            yield view, True, stillness.note(view)


def _show_bars(looks: Iterator[Poll], console: Console) -> MatrixView:
    with Live(console=console, refresh_per_second=4, transient=False) as live:

        def show(view: MatrixView, answers: bool, idle_s: float) -> None:
            live.update(progress_bars(view, answers=answers, idle_s=idle_s), refresh=True)

        return _for_each_poll(looks, show)


def _show_lines(looks: Iterator[Poll], console: Console, every_s: float) -> MatrixView:
    lines = _ChangeLines(lambda line: console.print(line, markup=False, soft_wrap=True), every_s)
    return _for_each_poll(looks, lines.look)


def _for_each_poll(looks: Iterator[Poll], tell: Callable[[MatrixView, bool, float], None]) -> MatrixView:
    view, answers, idle_s = next(looks)
    tell(view, answers, idle_s)
    for view, answers, idle_s in looks:
        tell(view, answers, idle_s)
    return view


def progress_bars(view: MatrixView, *, answers: bool = True, idle_s: float = 0.0) -> RenderableType:
    """One line for each device, and one for the whole."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(width=_BAR_WIDTH)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for device in view.progress:
        bar = ProgressBar(total=max(device.total, 1), completed=device.finished, width=_BAR_WIDTH)
        grid.add_row(
            Text(device.device_id), bar, f"{device.finished}/{device.total}", Text(current_work(device))
        )
    return Group(grid, Text(status_line(view, answers=answers, idle_s=idle_s)))


def status_line(view: MatrixView, *, answers: bool = True, idle_s: float = 0.0) -> str:
    """How the whole stands: `matrix 3: 12 of 40 jobs, about 2 min 5 s left`."""
    finished = sum(device.finished for device in view.progress)
    total = sum(device.total for device in view.progress)
    said = f"matrix {view.matrix_id}: {finished} of {total} jobs{repeated_blocks_text(view)}"
    if not answers:
        return f"{said}; the farm does not answer, trying again"
    if view.finished_at is not None:
        return (
            f"{said}, {view.state} after {elapsed_text((view.finished_at - view.created_at).total_seconds())}"
        )
    still = ""
    if idle_s >= IDLE_NOTICE_S:
        why = f"{farm_command()} matrix why {view.matrix_id}"
        still = f"; nothing began or ended for {elapsed_text(idle_s)}: {why}"
    later = f", {plural(view.not_queued, 'job')} to unfold" if view.not_queued else ""
    return f"{said}{later}, {time_left_text(view.eta_s, view.without_eta)}{still}"


class _ChangeLines:
    """Says what ended, at most every `every_s`, who runs and who waits more rarely, and the end at once."""

    def __init__(self, write: Callable[[str], None], every_s: float) -> None:
        self._write = write
        self._every_s = every_s
        self._said: object = None
        self._places: object = None
        self._said_at_s = float("-inf")

    def look(self, view: MatrixView, answers: bool, idle_s: float) -> None:
        news = ([(each.finished, each.total) for each in view.progress], answers, idle_s >= IDLE_NOTICE_S)
        quiet_s = time.monotonic() - self._said_at_s
        is_due = quiet_s >= self._every_s and news != self._said
        has_moved = quiet_s >= max(self._every_s, STATUS_EVERY_S) and view.progress != self._places
        if is_due or has_moved or (view.finished_at is not None and news != self._said):
            self._said, self._places, self._said_at_s = news, view.progress, time.monotonic()
            devices = [progress_line(device) for device in view.progress if view.finished_at is None]
            line = status_line(view, answers=answers, idle_s=idle_s)
            self._write(" | ".join([line, *devices]))
