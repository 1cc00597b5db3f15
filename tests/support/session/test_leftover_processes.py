"""A test run that is interrupted, or killed, leaves no process behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.session.leftover_processes import MARK, marked

ROOT = Path(__file__).resolve().parents[3]
#: Starts a process in a session of its own, as a virtual phone is, and waits to be interrupted.
_TEST = """
import subprocess, time
from pathlib import Path

def test_waits():
    phone = subprocess.Popen(["sleep", "600"], start_new_session=True)
    phone.returncode = 0
    Path("phone.new").write_text(str(phone.pid))
    Path("phone.new").rename("phone")
    time.sleep(600)
"""
_PLUGIN = """
from tests.support.session.leftover_processes import LeftoverProcesses

def pytest_configure(config):
    config.pluginmanager.register(LeftoverProcesses())
"""
_PATIENCE_S = 60


def until(what: str, holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        (signal.SIGINT, 0),
        (signal.SIGTERM, 2),
        pytest.param(signal.SIGINT, 2, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, 0, marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, 0, marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, 2, marks=pytest.mark.long),
    ],
)
def test_a_run_that_is_ended_leaves_nothing_behind(
    number: signal.Signals, workers: int, tmp_path: Path
) -> None:
    (tmp_path / "test_waits.py").write_text(_TEST)
    (tmp_path / "conftest.py").write_text(_PLUGIN)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    run = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
            f"-n{workers}",
        ],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until("the test begins", (tmp_path / "phone").exists)
        phone = int((tmp_path / "phone").read_text())
        mark = mark_of(phone)
        assert phone in set(marked(mark))
        run.send_signal(number)
        run.wait(_PATIENCE_S)
        until("nothing is left", lambda: not set(marked(mark)))
    finally:
        run.kill()
        run.wait()


def mark_of(pid: int) -> str:
    """What the run of a process is known by."""
    environment = Path(f"/proc/{pid}/environ")
    # The kernel shows none until the new program has its own.
    until("it has an environment", lambda: environment.read_bytes() != b"")
    told = environment.read_bytes().split(b"\0")
    (mark,) = (each.partition(b"=")[2].decode() for each in told if each.startswith(f"{MARK}=".encode()))
    return mark
