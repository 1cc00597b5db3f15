"""When a cached file was last used: its time of change is that run's fencing token, in seconds from 1970.

No clock orders the files. A phone's may jump, after a start or by hand, and every host has another; fencing
tokens only rise, whichever host the phone hangs on.
"""

from datetime import UTC, datetime

#: No fence gets that far: a later time is a clock's (2001 or after), so nobody knows the file's last run.
_CLOCK_TIMES_S = 10**9


def touch_used(names: str, fence: int) -> str:
    """A shell command that marks files of the current folder, as far as they are there, as used by a run.

    A `touch` without -t leaves the phone's time: such files count as used before all others.
    """
    time = datetime.fromtimestamp(fence, UTC).strftime("%Y%m%d%H%M.%S")
    return f"{{ TZ=UTC0 touch -c -t {time} {names} || touch -c {names}; }}"


def lru_key(modified_s: int) -> tuple[int, int]:
    """What to sort files by, least recently used first, from their times of change."""
    return (modified_s if modified_s < _CLOCK_TIMES_S else 0, modified_s)
