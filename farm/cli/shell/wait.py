"""Wait for a condition on the farm, and show what is waited for."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

import typer

from farm.cli.shell.output import err, print_notice

T = TypeVar("T")

POLL_S = 0.5


def wait_for(
    fetch: Callable[[], T],
    is_done: Callable[[T], bool],
    text: Callable[[T], str],
    *,
    detached: str,
    poll_s: float = POLL_S,
) -> T:
    """Call `fetch` until its result is done, and return that result.

    A terminal shows a spinner with `text`; other output gets a line for each change of it. After Ctrl-C the
    message `detached` says what goes on.

    Raises:
        typer.Exit: the user stopped waiting; the operation continues.
    """
    console, last_text = err(), ""
    try:
        view = fetch()
        if is_done(view):
            return view
        with console.status(text(view)) if console.is_terminal else nullcontext() as status:
            while not is_done(view):
                if status is not None:
                    status.update(text(view))
                elif text(view) != last_text:
                    last_text = text(view)
                    print_notice(last_text)
                time.sleep(poll_s)
                view = fetch()
    except KeyboardInterrupt:
        print_notice(detached)
        raise typer.Exit(130) from None
    return view
