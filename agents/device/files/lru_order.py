"""The order of use of cached files: a file's mtime is its last run's fence, in seconds from 1970.

No clock orders the files. A device's clock may jump, after a start or by hand, and every host has another;
fences only rise, whichever host the device is attached to.
"""

from datetime import UTC, datetime

#: No fence gets that far: a later time comes from a clock (2001 or later), so the file's last run is unknown.
_CLOCK_TIMES_S = 10**9


def touch_used(names: str, fence: int) -> str:
    """Return a shell command that marks files of the current folder, if present, as used by a run.

    A `touch` without -t leaves the device's time: such files count as used before all others.
    """
    time = datetime.fromtimestamp(fence, UTC).strftime("%Y%m%d%H%M.%S")
    return f"{{ TZ=UTC0 touch -c -t {time} {names} || touch -c {names}; }}"


def lru_key(modified_s: int) -> tuple[int, int]:
    """Return the sort key of a file by its mtime: least recently used first."""
    return (modified_s if modified_s < _CLOCK_TIMES_S else 0, modified_s)
