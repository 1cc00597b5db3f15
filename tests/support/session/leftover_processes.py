"""However a test run ends, what it started ends with it: a process of its own watches for that end.

Virtual phones, adb servers and farms are made to outlive who starts them, so no signal reaches them all. They
inherit the environment, in which the run has a mark.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

MARK = "BENCHFARM_TEST_RUN"
#: How long what is ended politely has for it.
_PATIENCE_S = 3.0
_LOOK_EVERY_S = 0.2


class LeftoverProcesses:
    """Marks the run and starts its watcher; a run inside of another's test is part of that one."""

    def pytest_configure(self) -> None:
        """Begin to watch, before any process is started."""
        if MARK in os.environ or not Path("/proc/self/environ").exists():
            return
        mark = uuid4().hex
        watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, mark, str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )
        # It outlives this process on purpose, which is nothing to warn of.
        watcher.returncode = 0
        os.environ[MARK] = mark


def marked(mark: str) -> Iterator[int]:
    """Yield the processes of a run that are alive."""
    told = f"{MARK}={mark}".encode()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            # It ended, or is somebody else's.
            continue
        if told in environment.split(b"\0"):
            yield int(process.name)


def end(mark: str) -> None:
    """End the processes of a run: politely, then not."""
    _send(mark, signal.SIGTERM)
    deadline_s = time.monotonic() + _PATIENCE_S
    while any(marked(mark)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    # What one of them started meanwhile is found by the next look.
    while _send(mark, signal.SIGKILL):
        time.sleep(0.05)


def _send(mark: str, number: signal.Signals) -> int:
    sent = 0
    for pid in marked(mark):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
        sent += 1
    return sent


def watch(mark: str, run: int) -> None:
    """Wait until a run's first process has ended, then end what it left.

    A pipe would not do: a forked child of the run holds it open.
    """
    while os.getppid() == run:
        time.sleep(_LOOK_EVERY_S)
    end(mark)


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
