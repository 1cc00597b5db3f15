"""A storm ends what it started, and takes nothing for its own doing that was not."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from disturbance import halted, killed
from farm_processes import Process, eventually


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Process]:
    process = Process(["sleep", "60"], tmp_path / "log")
    process.spawn()
    yield process
    process.stop()


def test_what_is_killed_lives_again(sleeper: Process) -> None:
    undo = killed(sleeper)
    assert not sleeper.is_running
    undo()
    assert sleeper.is_running


def test_what_ended_by_itself_is_not_passed_off_as_killed_or_stopped(tmp_path: Path) -> None:
    """A farm that had died of a mistake was killed once more, and started again as if nothing had been."""
    process = Process(["false"], tmp_path / "log")
    process.spawn()
    eventually(lambda: not process.is_running, "it ends")
    for disturb in (killed, halted):
        with pytest.raises(AssertionError, match="it ended with exit code 1"):
            disturb(process)


def test_a_process_that_stands_still_ends_as_soon_as_it_is_told_to(sleeper: Process) -> None:
    sleeper.send(signal.SIGSTOP)
    began_s = time.monotonic()
    sleeper.stop()
    assert time.monotonic() - began_s < 10
    assert not sleeper.is_running
