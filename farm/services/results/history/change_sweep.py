"""Search the stored points for changes now and then: in another process, at a small share of one core."""

import pickle
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from threading import Lock

import structlog

from farm.clock import Clock
from farm.core.errors import FarmError
from farm.core.results.history.recorded_change import DetectedChanges
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.services.results.history.changes import record_change, record_gone, update_change
from farm.store.results.history.detection_points import PointState, point_state

#: A search is followed by a pause of so many times the CPU time that it took: 4 % of one core at most. On a
#: busy machine it waits for long, and a pause that counts the wait would keep new changes back for an hour.
_PAUSE_TIMES = 24.0
#: The least pause between two searches.
LEAST_PAUSE_S = 60.0
#: A search that takes longer is killed, and tried again.
_LONGEST_S = 3600.0
_MODULE = "farm.services.results.history.detection"
_log = structlog.get_logger(__name__)


class ChangeSweep:
    """Calling it searches if points were stored since the last search; it blocks until that is done.

    Each change is recorded in a transaction of its own, with its alarm. A farm that is killed in between
    searches again: what is recorded already is found to be the same change.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        least_pause_s: float = LEAST_PAUSE_S,
        command: Sequence[str] = (sys.executable, "-m", _MODULE),
    ) -> None:
        """Nothing was searched yet.

        Args:
            database: where the points are.
            clock: of the farm.
            least_pause_s: between two searches.
            command: of the process that detects.
        """
        self._database = database
        self._clock = clock
        self._least_pause_s = least_pause_s
        self._command = command
        self._searched: PointState | None = None
        self._next_s = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = Lock()
        self._is_stopped = False

    def __call__(self) -> None:
        """Search, and record what was found.

        Raises:
            FarmError: of the database, here or in the process that detects; the next call searches again.
        """
        if time.monotonic() < self._next_s:
            return
        state = self._database.read(point_state)
        if state == self._searched or not state.newest_cell:
            return
        pause_s = self._least_pause_s
        try:
            detected, cpu_s = self._detect(self._clock.now())
            if isinstance(detected, FarmError):
                raise detected
            pause_s = max(pause_s, _PAUSE_TIMES * cpu_s)
            if detected is not None:
                record_all(self._database, detected, self._clock)
                self._searched = state
        finally:
            self._next_s = time.monotonic() + pause_s

    def stop(self) -> None:
        """End a search that is under way; the next process begins it again."""
        with self._stopping:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()

    def _detect(self, now: datetime) -> tuple[DetectedChanges | FarmError | None, float]:
        """Return what a process of its own detects, None if it failed or was stopped; and its CPU time, in s.

        That of a process that failed is its duration.
        """
        url = self._database.engine.url.render_as_string(hide_password=False)
        began_s = time.monotonic()
        with self._stopping:
            if self._is_stopped:
                return None, 0.0
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C in the farm's terminal ends the farm, which ends it.
                start_new_session=True,
            )
        try:
            printed, _ = self._process.communicate(pickle.dumps((url, now)), timeout=_LONGEST_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            _log.error("detection_too_slow", limit_s=_LONGEST_S)
            return None, time.monotonic() - began_s
        if self._process.returncode != 0:
            if not self._is_stopped:
                _log.error("detection_failed", exit_code=self._process.returncode)
            return None, time.monotonic() - began_s
        answer: tuple[DetectedChanges | FarmError, float] = pickle.loads(printed)
        return answer


def record_all(database: Database, detected: DetectedChanges, clock: Clock) -> None:
    """Record what a detection found, each change in a transaction of its own."""
    for change in detected.added:
        database.write(bind_tx(record_change, now=clock.now()), change)
    for change_id, change in detected.updated:
        database.write(bind_tx(update_change, now=clock.now()), change_id, change)
    for change_id in detected.gone:
        database.write(bind_tx(record_gone, now=clock.now()), change_id)
