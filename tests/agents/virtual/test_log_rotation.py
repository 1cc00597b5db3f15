"""A journal that grows is cut in two parts, and says the same."""

import os
import subprocess
from pathlib import Path

from agents.host.log_rotation import rotate_if_over, rotated_path
from agents.virtual.processes import RunMonitor, open_runs
from tests.support.agents.run_spans import run_spans

SERIAL = "grown"


def started(fence: int) -> "subprocess.Popen[bytes]":
    """A process of a run on the phone, past its exec."""
    environment = {**os.environ, "BENCHFARM_PHONE": SERIAL, "BENCHFARM_RUN": str(fence)}
    # It never execs again: within an exec it has no environment to be known by, and a look would miss it.
    process = subprocess.Popen(
        ["sh", "-c", "echo up; read -r word"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    # Closes its input, too.
    process.communicate()


def test_a_run_that_outlasts_parts_of_the_journal_stays_in_it(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    monitor = RunMonitor(SERIAL, journal, limit_bytes=100)
    long_one = started(1)
    try:
        monitor.look()
        for fence in (2, 3, 4):
            short = started(fence)
            monitor.look()
            end(short)
            monitor.look()
        assert {entry.fence for entry in open_runs(journal).values()} == {1}
        assert {1, 4} <= {span.fence for span in run_spans(journal)}
        assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "journal.1"]
    finally:
        end(long_one)


def test_a_file_within_its_limit_is_left_and_the_part_before_the_last_goes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert not rotate_if_over(path, 3)
    for text in ("old ", "new "):
        path.write_text(text)
        assert not rotate_if_over(path, 4)
        assert rotate_if_over(path, 3)
    assert rotated_path(path).read_text() == "new "
    assert not path.exists()
