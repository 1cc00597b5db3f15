"""The search for changes in a process of its own: what is recorded once stays one, wherever it is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from farm.clock import SystemClock
from farm.core.results.history.recorded_change import DetectedChanges
from farm.database.engine import sqlite_url
from farm.services.operations.alarms import list_alarms
from farm.services.results.history.change_sweep import ChangeSweep
from farm.services.results.history.changes import list_changes
from farm.services.results.history.detection import detect_recorded
from tests.services.results.history.test_latest_speedups import measured
from tests.support.farm.copied_sessions import FOUR_PAIRS, another_file, copy_session
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig

#: Searches, and ends without a trace before its nth commit of a write.
KILLED = """
import os, sys
import sqlalchemy as sa
from farm.clock import SystemClock
from farm.database.engine import Database
from farm.services.results.history.change_sweep import ChangeSweep

database, commits = Database(sys.argv[1]), int(sys.argv[2])

def count(connection):
    global commits
    # Reads end by a commit, too.
    commits -= bool(connection.get_execution_options().get("farm_writes"))
    if commits == 0:
        os._exit(9)

sa.event.listen(database.engine, "commit", count)
ChangeSweep(database, SystemClock())()
"""

pytestmark = pytest.mark.long


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


def test_a_stopped_search_records_nothing(history: FarmRig) -> None:
    sweep = ChangeSweep(history.database, history.clock)
    sweep.stop()
    sweep()
    assert history.read(list_changes) == []


def test_a_search_that_is_killed_at_any_commit_is_begun_again_without_a_doubled_alarm(
    history: FarmRig, tmp_path: Path
) -> None:
    if history.database.engine.dialect.name != "sqlite":
        pytest.skip("the order of commits is the same")
    recorded = []
    for commits in (1, 2, 1):
        command = [sys.executable, "-c", KILLED, sqlite_url(history.path), str(commits)]
        killed = subprocess.run(command, check=False, timeout=300)
        recorded.append((killed.returncode, len(history.read(list_changes, all=True))))
    # Before its first commit it has recorded nothing, before its second one change.
    assert recorded == [(9, 0), (9, 1), (9, 1)]
    ChangeSweep(history.database, SystemClock())()
    changes = history.read(list_changes, all=True)
    assert len(changes) == 2
    alarms = [*history.read(list_alarms, cleared=True)]
    assert sorted(alarm.subject_id for alarm in alarms) == sorted(str(change.change_id) for change in changes)
