"""Watch a matrix: a progress bar for each device, its current work, and the time left."""

import time
from collections.abc import Callable, Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from farm.cli.matrices.report import (
    current_work,
    progress_line,
    repeated_blocks_text,
    time_left,
    total_text,
)
from farm.cli.shell.next_steps import farm_command
from farm.core.base.units import elapsed_text
from farm.core.errors import FarmFault
from farm.presentation.labels import device_name
from farm.presentation.text import plural, range_text
from farm.wire.documents.matrices.matrices import MatrixView

POLL_S = 1.0
#: Without a terminal, lines about finished jobs are at least this far apart.
LINE_EVERY_S = 5.0
#: Lines about other changes are at least this far apart: devices that share a CPU take turns often.
STATUS_EVERY_S = 60.0
#: Time-out for a farm that is restarted; after it the watch ends with the error.
AWAY_TIMEOUT_S = 180.0
#: After this time without a change, the status line refers to `farm matrix why`; most runs are shorter.
IDLE_NOTICE_S = 120.0

_BAR_WIDTH = 20


def watch_matrix(
    fetch: Callable[[], MatrixView],
    console: Console,
    *,
    poll_s: float = POLL_S,
    line_every_s: float = LINE_EVERY_S,
    timeout_s: float = AWAY_TIMEOUT_S,
) -> MatrixView:
    """Show the progress of a matrix, as returned by `fetch`, until it is finished.

    Raises:
        FarmFault: the farm went away and did not come back for `timeout_s`.
        KeyboardInterrupt: the user stopped watching; the matrix continues.
    """
    polls = _poll(fetch, poll_s, timeout_s)
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=False) as live:
            for view, answers, idle_s in polls:
                live.update(progress_bars(view, answers=answers, idle_s=idle_s), refresh=True)
        return view
    lines = _ChangeLines(lambda line: console.print(line, markup=False, soft_wrap=True), line_every_s)
    for view, answers, idle_s in polls:
        lines.update(view, answers, idle_s)
    return view


def watch_changes(
    fetch: Callable[[], MatrixView],
    on_change: Callable[[MatrixView], None],
    *,
    poll_s: float = POLL_S,
) -> MatrixView:
    """Call `on_change` with the matrix at first, after each change, and when it is finished.

    Raises:
        FarmFault: the farm went away and did not come back for `AWAY_TIMEOUT_S`.
        KeyboardInterrupt: the user stopped watching; the matrix continues.
    """
    last_state: object = None
    for view, _, _ in _poll(fetch, poll_s, AWAY_TIMEOUT_S):
        # The estimated time changes with every poll.
        state = (view.state, [device.model_copy(update={"eta_s": None}) for device in view.progress])
        if state != last_state:
            last_state = state
            on_change(view)
    return view


Poll = tuple[MatrixView, bool, float]
"""The last known matrix, whether the farm answers, and the seconds without a change."""


def _poll(fetch: Callable[[], MatrixView], poll_s: float, timeout_s: float) -> Iterator[Poll]:
    """Fetch the matrix every `poll_s` until it is finished."""
    view, answers, last_progress = fetch(), True, None
    answered_s = changed_s = time.monotonic()
    while True:
        progress = [(device.finished, device.current) for device in view.progress]
        if progress != last_progress:
            last_progress, changed_s = progress, time.monotonic()
        yield view, answers, time.monotonic() - changed_s
        if view.finished_at is not None:
            return
        time.sleep(poll_s)
        try:
            view, answers, answered_s = fetch(), True, time.monotonic()
        except FarmFault:
            answers = False
            if time.monotonic() - answered_s > timeout_s:
                raise


def progress_bars(view: MatrixView, *, answers: bool = True, idle_s: float = 0.0) -> RenderableType:
    """Return one line for each device, and one for the matrix."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(width=_BAR_WIDTH)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for device in view.progress:
        ran = device.finished - device.cancelled
        bar = ProgressBar(total=max(device.total, 1), completed=ran, width=_BAR_WIDTH)
        grid.add_row(
            Text(device_name(device)),
            bar,
            f"{ran}/{total_text(device)}",
            Text(current_work(device)),
        )
    return Group(grid, Text(status_line(view, answers=answers, idle_s=idle_s)))


def status_line(view: MatrixView, *, answers: bool = True, idle_s: float = 0.0) -> str:
    """Return the progress of the matrix: `matrix 3: 12 of 40 jobs, about 2 min 5 s left`."""
    cancelled = sum(device.cancelled for device in view.progress)
    ran = sum(device.finished for device in view.progress) - cancelled
    total, most = (sum(getattr(device, name) for device in view.progress) for name in ("total", "max_total"))
    text = f"matrix {view.matrix_id}: {ran} of {range_text(total, most)} jobs{repeated_blocks_text(view)}"
    if cancelled:
        text = f"{text}, {cancelled} cancelled"
    if not answers:
        return f"{text}; the farm does not answer, retrying"
    if view.finished_at is not None:
        return (
            f"{text}, {view.state} after {elapsed_text((view.finished_at - view.created_at).total_seconds())}"
        )
    idle_note = ""
    if idle_s >= IDLE_NOTICE_S:
        why = f"{farm_command()} matrix why {view.matrix_id}"
        idle_note = f"; no job began or ended for {elapsed_text(idle_s)}: {why}"
    expanding = f", {plural(view.not_queued, 'job')} not queued yet" if view.not_queued else ""
    return f"{text}{expanding}, {time_left(view)}{idle_note}"


class _ChangeLines:
    """Writes finished jobs at most every `every_s`, other changes less often, and the end at once."""

    def __init__(self, write: Callable[[str], None], every_s: float) -> None:
        self._write = write
        self._every_s = every_s
        self._state: object = None
        self._written_progress: object = None
        self._written_at_s = float("-inf")

    def update(self, view: MatrixView, answers: bool, idle_s: float) -> None:
        state = (
            [(device.finished, device.total) for device in view.progress],
            answers,
            idle_s >= IDLE_NOTICE_S,
        )
        quiet_s = time.monotonic() - self._written_at_s
        is_due = quiet_s >= self._every_s and state != self._state
        has_moved = quiet_s >= max(self._every_s, STATUS_EVERY_S) and view.progress != self._written_progress
        if is_due or has_moved or (view.finished_at is not None and state != self._state):
            self._state, self._written_progress, self._written_at_s = state, view.progress, time.monotonic()
            devices = [progress_line(device) for device in view.progress if view.finished_at is None]
            line = status_line(view, answers=answers, idle_s=idle_s)
            self._write(" | ".join([line, *devices]))
