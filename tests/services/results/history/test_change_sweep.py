"""The search for changes in a process of its own: what is recorded once stays one, wherever it is killed."""

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from farm.clock import SystemClock
from farm.core.errors import FarmBusy
from farm.core.results.history.recorded_change import DetectedChanges
from farm.services.operations.alarms import list_alarms
from farm.services.results.history.change_sweep import ChangeSweep
from farm.services.results.history.changes import list_changes
from farm.services.results.history.detection import detect_recorded
from tests.services.results.history.test_latest_speedups import measured
from tests.support.farm.copied_sessions import FOUR_PAIRS, another_file, copy_session
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig

#: Searches, and is killed at the nth commit of a write: before or after it.
KILLED_RECORDING = """
import os, signal, sys
import sqlalchemy as sa
from farm.clock import SystemClock
from farm.database.engine import Database
from farm.services.results.history.change_sweep import ChangeSweep

url, commits, when = sys.argv[1], int(sys.argv[2]), sys.argv[3]
database = Database(url)

def count(connection):
    global commits
    # Reads end by a commit, too.
    commits -= bool(connection.get_execution_options().get("farm_writes"))
    if commits == 0:
        if when == "after":
            connection.connection.dbapi_connection.commit()
        os.kill(os.getpid(), signal.SIGKILL)

sa.event.listen(database.engine, "commit", count)
ChangeSweep(database, SystemClock())()
"""
#: The process of a search, killed before its nth statement; it prints how many there were.
KILLED_READING = """
import os, signal, sys
import sqlalchemy as sa
from farm.services.results.history.detection import main

statements, last = 0, int(sys.argv[1])

def count(*_):
    global statements
    statements += 1
    if statements == last:
        os.kill(os.getpid(), signal.SIGKILL)

sa.event.listen(sa.Engine, "before_cursor_execute", count)
main()
print(statements, file=sys.stderr)
"""
#: Searches by a process that another one kills.
SWEEPING = """
import sys
from farm.clock import SystemClock
from farm.database.engine import Database
from farm.services.results.history.change_sweep import ChangeSweep

ChangeSweep(Database(sys.argv[1]), SystemClock())()
"""

#: Takes long and computes little, as on a busy machine; writes a line for each search.
WAITING = """
import pickle, sys, time
from farm.core.results.history.recorded_change import DetectedChanges

pickle.load(sys.stdin.buffer)
with open(sys.argv[1], "a") as searches:
    print("search", file=searches)
time.sleep(2)
pickle.dump((DetectedChanges(added=[], updated=[], gone=[]), 0.0), sys.stdout.buffer)
"""

#: The process of a search whose database goes away while it reads.
INTERRUPTED = """
from farm.core.errors import FarmBusy
from farm.services.results.history import detection

def detect_recorded(connection, *, now):
    raise FarmBusy("the database refused for now: terminating connection")

detection.detect_recorded = detect_recorded
detection.main()
"""

#: Processes that import the farm are killed one after the other.
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def history(farm: FarmRig, host: HostRig) -> FarmRig:
    """Forty sessions of four pairs; from the 20th and from the 30th on with a file that is slower."""
    source = measured(farm, host, axes=FOUR_PAIRS, rounds=2)
    compute_points(farm)
    second, third = another_file(farm, "2"), another_file(farm, "3")
    for day in range(1, 40):
        slower, variant_id = (1.0, None) if day < 20 else (1.3, second) if day < 30 else (1.8, third)
        copy_session(farm, source, days=day, slower=slower, variant_id=variant_id)
    farm.clock.advance(40 * 86400)
    return farm


def test_a_search_runs_again_only_when_points_were_stored(history: FarmRig) -> None:
    sweep = ChangeSweep(history.database, history.clock, least_pause_s=0.0)
    sweep()
    found = history.read(list_changes)
    assert len(found) == 2
    assert history.read(detect_recorded, now=history.clock.now()) == DetectedChanges(
        added=[], updated=[], gone=[]
    )
    sweep()
    assert history.read(list_changes) == found


def test_a_search_whose_database_goes_away_raises_its_error_and_leaves_no_traceback(
    history: FarmRig, capfd: pytest.CaptureFixture[str]
) -> None:
    sweep = ChangeSweep(
        history.database, SystemClock(), least_pause_s=0.0, command=[sys.executable, "-c", INTERRUPTED]
    )
    for _ in range(2):
        with pytest.raises(FarmBusy, match="terminating connection"):
            sweep()
    assert "Traceback" not in capfd.readouterr().err


def test_a_search_whose_farm_has_ended_ends_without_a_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as search:
        assert search.stdin is not None
        assert search.stdout is not None
        assert search.stderr is not None
        search.stdout.close()
        search.stdin.write(pickle.dumps(("sqlite://", SystemClock().now())))
        search.stdin.close()
        assert search.stderr.read() == b""
    assert search.returncode == -signal.SIGPIPE


def test_a_stopped_search_records_nothing(history: FarmRig) -> None:
    sweep = ChangeSweep(history.database, history.clock)
    sweep.stop()
    sweep()
    assert history.read(list_changes) == []


def test_the_pause_after_a_search_does_not_count_what_it_waited_for(history: FarmRig, tmp_path: Path) -> None:
    searches = tmp_path / "searches"
    command = [sys.executable, "-c", WAITING, str(searches)]
    sweep = ChangeSweep(history.database, SystemClock(), least_pause_s=0.0, command=command)
    sweep()
    copy_session(history, 1, days=41, slower=1.0)
    sweep()
    assert searches.read_text().split() == ["search", "search"]


def url_of(farm: FarmRig) -> str:
    return farm.database.engine.url.render_as_string(hide_password=False)


def recorded(farm: FarmRig) -> tuple[int, int]:
    """How many changes are recorded, and how many alarms were raised for them, each for one of its own."""
    changes = farm.read(list_changes, all=True)
    alarms = farm.read(list_alarms, cleared=True)
    assert len({alarm.subject_id for alarm in alarms}) == len(alarms)
    assert {alarm.subject_id for alarm in alarms} <= {str(change.change_id) for change in changes}
    return len(changes), len(alarms)


def read_until_killed(farm: FarmRig, statement: int) -> tuple[int, int]:
    """The exit code of the process of a search that is killed at a statement, and how many it sent if not."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_READING, str(statement)],
        input=pickle.dumps((url_of(farm), farm.clock.now())),
        capture_output=True,
        check=False,
        timeout=300,
    )
    return done.returncode, int(done.stderr or 0)


def test_a_search_that_is_killed_at_any_moment_is_begun_again_without_a_doubled_alarm(
    history: FarmRig,
) -> None:
    # While it reads: nothing is recorded, and nobody waits for what it held.
    ended, statements = read_until_killed(history, 0)
    assert ended == 0
    assert statements > 5
    for statement in (1, 2, statements // 2, statements):
        assert read_until_killed(history, statement) == (-signal.SIGKILL, 0)
    assert recorded(history) == (0, 0)
    # The process that the farm waits for, as by the kernel when memory is short: the farm goes on.
    farm = subprocess.Popen([sys.executable, "-c", SWEEPING, url_of(history)])
    children = Path(f"/proc/{farm.pid}/task/{farm.pid}/children")
    deadline = time.monotonic() + 300
    while not (child := children.read_text().split()):
        assert farm.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.kill(int(child[0]), signal.SIGKILL)
    assert farm.wait(timeout=300) == 0
    assert recorded(history) == (0, 0)
    # While it records: before the commit of a change, or after it and before the next one.
    for commit, when, count in ((1, "before", 0), (1, "after", 1), (1, "before", 1)):
        command = [sys.executable, "-c", KILLED_RECORDING, url_of(history), str(commit), when]
        assert subprocess.run(command, check=False, timeout=300).returncode == -signal.SIGKILL
        assert recorded(history) == (count, count)
    for _ in range(2):
        ChangeSweep(history.database, SystemClock(), least_pause_s=0.0)()
        assert recorded(history) == (2, 2)
