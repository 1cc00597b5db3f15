"""The running matrices that a process has counted: all of their jobs once, and then what happened since."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from weakref import WeakValueDictionary

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.database.tables import events, jobs
from farm.store.jobs.running_jobs import RunningJobs, count_jobs, count_since

#: After so many ends of jobs of the farm all jobs of a matrix are counted again, or after a quarter as many
#: as it has jobs if those are more: an end is read with its job's row. The shares were not measured.
MOST_ENDS, _MOST_ENDS_SHARE = 20_000, 4
#: So are they after so many seconds, which is less than any rule of retention keeps events.
MAX_AGE_S = 600.0
#: Of the matrices that are remembered, all together; those used least recently are forgotten first.
MOST_DEVICES = 50_000


@dataclass(frozen=True, slots=True)
class _Known:
    #: When all jobs were counted, in seconds of a monotonic clock.
    counted_at: float
    jobs: RunningJobs


@dataclass(frozen=True, slots=True)
class _Mark:
    """The last event and the last job that a snapshot has."""

    event: int
    job: int


class RunningMatrices:
    """The running matrices that one farm process has counted. Threads may share it.

    A job that has ended never changes, and its end is an event of the same transaction. Writers have one
    lock, so jobs and events become visible in the order of their numbers: what was counted up to an event
    holds, and a look reads the ends and jobs behind it. PostgreSQL may for a moment have a writer without the
    lock, which commits a lower number later: there a look also compares the number of queued jobs, and counts
    all again where it differs.
    """

    def __init__(
        self,
        *,
        most_ends: int = MOST_ENDS,
        most_devices: int = MOST_DEVICES,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_ends, self._most_devices, self._monotonic_s = most_ends, most_devices, monotonic_s
        self._lock = threading.Lock()
        #: In the order of their last use.
        self._known: dict[MatrixId, _Known] = {}
        self._count_locks: WeakValueDictionary[MatrixId, threading.Lock] = WeakValueDictionary()

    def find(self, connection: Connection, matrix_ids: Collection[MatrixId]) -> dict[MatrixId, RunningJobs]:
        """Return the jobs of some matrices."""
        if not matrix_ids:
            return {}
        mark = _mark(connection)
        known = self._usable(matrix_ids, mark)
        found = self._follow(connection, known, mark)
        for matrix_id in matrix_ids:
            if matrix_id in found:
                continue
            with self._count_lock(matrix_id):
                # Another thread may have counted it in between.
                newer = self._usable([matrix_id], mark)
                if newer.get(matrix_id) is known.get(matrix_id):
                    newer = {}
                found |= self._follow(connection, newer, mark) or self._count(connection, matrix_id, mark)
        return found

    def forget(self, matrix_ids: Collection[MatrixId]) -> None:
        """Forget matrices that have finished."""
        with self._lock:
            for matrix_id in matrix_ids:
                self._known.pop(matrix_id, None)

    def _count_lock(self, matrix_id: MatrixId) -> threading.Lock:
        with self._lock:
            return self._count_locks.setdefault(matrix_id, threading.Lock())

    def _usable(self, matrix_ids: Collection[MatrixId], mark: _Mark) -> dict[MatrixId, _Known]:
        """Return what is known of some matrices and neither too old nor newer than a snapshot."""
        now = self._monotonic_s()
        with self._lock:
            known = {matrix_id: self._known.get(matrix_id) for matrix_id in matrix_ids}
        return {
            matrix_id: own
            for matrix_id, own in known.items()
            if own is not None
            and own.jobs.last_event <= mark.event
            and own.jobs.last_job <= mark.job
            and now - own.counted_at <= MAX_AGE_S
        }

    def _count(self, connection: Connection, matrix_id: MatrixId, mark: _Mark) -> dict[MatrixId, RunningJobs]:
        now = self._monotonic_s()
        found = {matrix_id: count_jobs(connection, matrix_id, mark.event)}
        self._store({matrix_id: _Known(now, found[matrix_id])})
        return found

    def _follow(
        self, connection: Connection, known: Mapping[MatrixId, _Known], mark: _Mark
    ) -> dict[MatrixId, RunningJobs]:
        """Count what happened since; matrices that are to be counted in full are missing."""
        if not known:
            return {}
        counted = {matrix_id: own.jobs for matrix_id, own in known.items()}
        most_ends = {
            matrix_id: max(self._most_ends, sum(own.jobs.values()) // _MOST_ENDS_SHARE)
            for matrix_id, own in counted.items()
        }
        found = count_since(connection, counted, most_ends, mark.event)
        self._store({matrix_id: _Known(known[matrix_id].counted_at, own) for matrix_id, own in found.items()})
        return found

    def _store(self, counted: Mapping[MatrixId, _Known]) -> None:
        """Remember what is newer than what is known, and forget what is too old or too much."""
        now = self._monotonic_s()
        with self._lock:
            for matrix_id, own in counted.items():
                kept = self._known.pop(matrix_id, own)
                self._known[matrix_id] = kept if _order(kept.jobs) > _order(own.jobs) else own
            for matrix_id in [key for key, own in self._known.items() if now - own.counted_at > MAX_AGE_S]:
                del self._known[matrix_id]
            devices = sum(len(own.jobs.jobs) for own in self._known.values())
            while devices > self._most_devices and len(self._known) > 1:
                devices -= len(self._known.pop(next(iter(self._known))).jobs.jobs)


def _order(counted: RunningJobs) -> tuple[int, int]:
    return counted.last_event, counted.last_job


_MARK_QUERY = sa.select(
    sa.select(sa.func.max(events.c.event_id)).scalar_subquery().label("event"),
    sa.select(sa.func.max(jobs.c.job_id)).scalar_subquery().label("job"),
)


def _mark(connection: Connection) -> _Mark:
    row = connection.execute(_MARK_QUERY).one()
    return _Mark(row.event or 0, row.job or 0)
