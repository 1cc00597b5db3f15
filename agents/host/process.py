"""Processes of an earlier agent: identified by /proc, terminated by pid."""

import os
import select
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

TERMINATION_SIGNALS = (signal.SIGTERM, signal.SIGKILL)


def command_line(pid: int) -> list[str]:
    """Return a process's arguments; empty for a missing process or a zombie."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [part.decode(errors="replace") for part in raw.split(b"\0")[:-1]]


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when it has ended."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields and fields[0] not in "ZX" else None


def stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on (proc(5)); empty without such a process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    # The name in brackets may contain anything, brackets too.
    return stat.rpartition(")")[2].split()


def end_process(
    pid: int,
    is_ours: Callable[[int], bool],
    *,
    deadline_s: float,
    signals: Sequence[signal.Signals] = TERMINATION_SIGNALS,
) -> bool:
    """Send a process each signal in turn until it ends; return whether it did. Blocks.

    The pid may long have been given to another process: `is_ours` is called once the pid is pinned.
    `deadline_s` is the time after each signal.
    """
    try:
        pinned = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if not is_ours(pid):
            return True
        for number in signals:
            signal.pidfd_send_signal(pinned, number)
            # A pidfd turns readable when its process ends, reaped or not: pidfd_open(2).
            if select.select([pinned], [], [], deadline_s)[0]:
                return True
    except ProcessLookupError:
        return True
    finally:
        os.close(pinned)
    return False


def host_boot_id() -> str:
    """Return an id that changes at each boot of this host; constant where the system provides none."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text(encoding="ascii").strip() if path.exists() else "unknown"
