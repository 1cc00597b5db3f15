"""Waiting for something that the farm sees to, with a word of what it waits for."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from farm.cli.shell.output import err, print_notice

if TYPE_CHECKING:
    from rich.status import Status

T = TypeVar("T")

POLL_S = 0.5


def wait_for(
    look: Callable[[], T], is_over: Callable[[T], bool], words: Callable[[T], str], *, poll_s: float = POLL_S
) -> T:
    """What `look` gives once it is over; a spinner says what is waited for, or a line where it changes.

    Raises:
        KeyboardInterrupt: the person does not want to wait; what was begun goes on.
    """
    found = look()
    if is_over(found):
        return found
    console = err()
    if not console.is_terminal:
        return _with_lines(found, look, is_over, words, poll_s)
    with console.status(words(found)) as status:
        return _with_spinner(found, status, look, is_over, words, poll_s)


def _with_spinner(
    found: T,
    status: "Status",
    look: Callable[[], T],
    is_over: Callable[[T], bool],
    words: Callable[[T], str],
    poll_s: float,
) -> T:
    while not is_over(found):
        status.update(words(found))
        time.sleep(poll_s)
        found = look()
    return found


def _with_lines(
    found: T, look: Callable[[], T], is_over: Callable[[T], bool], words: Callable[[T], str], poll_s: float
) -> T:
    said = ""
    while not is_over(found):
        if words(found) != said:
            said = words(found)
            print_notice(said)
        time.sleep(poll_s)
        found = look()
    return found
