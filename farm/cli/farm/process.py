"""A farm as a child process: start it, wait until it answers, stop it gracefully."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farm.cli.shell.address import find_running
from farm.client.farm_client import FarmClient
from farm.core.errors import FarmFault

START_S = 60.0
POLL_S = 0.2
#: Seconds before the next, stronger signal: the agent may be in the middle of a run.
TIMEOUT_S_BY_SIGNAL = {signal.SIGINT: 30.0, signal.SIGTERM: 15.0, signal.SIGKILL: 10.0}
LOG_NAME = "farm-up.log"
TAIL_LINES = 15


@contextmanager
def farm_process(folder: Path, *, virtual: int) -> Iterator[str]:
    """Run `farm up` on a free port during the block, and yield its address.

    Raises:
        FarmFault: it did not start; the error contains the end of its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / LOG_NAME
    command = [sys.executable, "-m", "farm.cli.shell.main", "up", "--port", "0", "--data", str(folder)]
    with log.open("ab") as sink:
        child = subprocess.Popen(
            [*command, "--virtual", str(virtual)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            # Ctrl-C goes to the parent only, which then stops the child.
            start_new_session=True,
        )
    try:
        yield _wait_for_address(child, folder, log)
    finally:
        stop_process(child)


def stop_process(child: "subprocess.Popen[bytes]") -> None:
    """Stop a process with increasingly strong signals, and wait until it has ended."""
    for number, timeout_s in TIMEOUT_S_BY_SIGNAL.items():
        child.send_signal(number)
        try:
            child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            continue
        return


def log_tail(log: Path) -> str:
    """Return the path and the last lines of a log."""
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:] if log.exists() else []
    return "\n".join([f"the end of {log}:", *(f"  {line}" for line in lines)])


def _wait_for_address(child: "subprocess.Popen[bytes]", folder: Path, log: Path) -> str:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        if child.poll() is not None:
            raise _start_error(f"the farm ended with exit code {child.returncode}", log)
        url = find_running(folder)
        if url and _is_responding(url):
            return url
        time.sleep(POLL_S)
    raise _start_error(f"the farm did not answer within {START_S:.0f} s", log)


def _is_responding(url: str) -> bool:
    with FarmClient(url, answer_s=5.0) as farm:
        return farm.is_healthy()


def _start_error(message: str, log: Path) -> FarmFault:
    return FarmFault(f"{message}; {log_tail(log)}", hint=f"the whole log is in {log}")
