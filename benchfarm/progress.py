"""Waiting for a matrix: bars in a terminal, one line of HTML in a notebook."""

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any

from farm.cli.matrices.watch import POLL_S, status_line, watch_changes, watch_matrix
from farm.cli.shell.output import err, print_notice
from farm.client.farm_client import FarmClient
from farm.presentation.labels import device_name
from farm.wire.documents.matrices.matrices import DeviceProgress, MatrixView


def wait_with_progress(
    client: FarmClient, view: MatrixView, *, timeout_s: float | None, shows: bool
) -> MatrixView:
    """Wait until a matrix has finished, and return it.

    Raises:
        TimeoutError: it has not within `timeout_s` seconds.
        KeyboardInterrupt: the wait was interrupted.
    """
    fetch = _fetch_until(client, view, timeout_s)
    try:
        if not shows:
            return watch_changes(fetch, lambda _: None)
        display = _notebook_display()
        if display is None:
            return watch_matrix(fetch, err())
        return watch_changes(fetch, lambda changed: display(progress_html(changed)))
    except KeyboardInterrupt:
        print_notice(detached_text(client, view))
        raise


def detached_text(client: FarmClient, view: MatrixView) -> str:
    """Return how to go on with a matrix that is not waited for any more."""
    return (
        f"Detached: matrix {view.matrix_id} continues.\n"
        f"Farm().matrix({view.matrix_id}).wait()    wait for it again\n"
        f"Farm().matrix({view.matrix_id}).cancel()  cancel it\n"
        f"{client.url}/matrices/{view.matrix_id}  its page"
    )


def progress_html(view: MatrixView) -> str:
    """Return the progress of a matrix as HTML: a bar for each device."""
    bars = "".join(map(_device_html, view.progress))
    return f"<div>{escape(status_line(view))}{bars}</div>"


def _device_html(device: DeviceProgress) -> str:
    ran = device.finished - device.cancelled
    return (
        f"<div><progress max='{max(device.total, 1)}' value='{ran}'></progress> "
        f"{escape(device_name(device))} {ran} of {device.total} {escape(device.current or '')}</div>"
    )


def _fetch_until(client: FarmClient, view: MatrixView, timeout_s: float | None) -> Callable[[], MatrixView]:
    """Return a function that fetches the matrix, for so long."""
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s

    def fetch() -> MatrixView:
        latest = client.matrix(view.matrix_id)
        if latest.finished_at is None and deadline_s is not None and time.monotonic() + POLL_S > deadline_s:
            raise TimeoutError(f"matrix {view.matrix_id} has not finished within {timeout_s:g} s; it goes on")
        return latest

    return fetch


def _notebook_display() -> Callable[[str], None] | None:
    """Return how to replace what a cell of a notebook shows; None elsewhere."""
    # Only who runs in a notebook has imported it.
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)
    return lambda html: handle.update(HTML(html))
