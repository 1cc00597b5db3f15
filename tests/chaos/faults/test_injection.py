"""A storm ends what it started, and takes nothing for its own doing that was not."""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.faults.injection import full, halted, killed
from tests.support.farm.processes import Process, eventually


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


def test_what_ended_automatically_is_not_passed_off_as_killed_or_stopped(tmp_path: Path) -> None:
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


#: Adds a line to a file, again and again, and goes on when it cannot.
WRITES_ON = """
import sys, time
from contextlib import suppress
from pathlib import Path
while True:
    with suppress(OSError), Path(sys.argv[1]).open("a") as file:
        print("told", file=file)
    time.sleep(0.01)
"""


def test_a_full_disk_takes_no_line_more_until_there_is_room_again(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    writer = Process([sys.executable, "-c", WRITES_ON, str(lines)], tmp_path / "log")
    writer.spawn()
    try:
        eventually(lambda: lines.exists() and lines.stat().st_size > 0, "it writes")
        room_again = full(writer)
        held = lines.stat().st_size
        # Nothing tells of what is not written: the process tries every 10 ms.
        time.sleep(0.3)
        assert lines.stat().st_size - held <= len("told\n")
        room_again()
        eventually(lambda: lines.stat().st_size > held + 2 * len("told\n"), "it writes again")
        undo = full(writer)
    finally:
        writer.stop()
    undo()
