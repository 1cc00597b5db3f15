"""What the jobs of a running matrix come to: counted once by a process, and then what events tell of it."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.core.jobs.job import JobEvent, JobState
from farm.core.matrices.estimate import PACE_WINDOW
from farm.database.tables import events, jobs, literal
from farm.store.jobs.counts import Tally, last_finish_times, tally_by_device

#: After so many events, all jobs are counted again.
MOST_EVENTS = 20_000
#: So are they after so many seconds, which is less than any rule of retention keeps events.
MAX_AGE_S = 600.0
#: Matrices that are remembered; beyond it, all are counted again.
_MAX_KNOWN = 50
#: Device, round, block and repeat.
_Repeat = tuple[DeviceId, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJobs:
    """The jobs of a matrix as one transaction sees them."""

    #: Jobs that are added later have a higher number, and so have events.
    last_job: JobId
    last_event: int
    #: The number of jobs of each device.
    jobs: Mapping[DeviceId, int]
    #: Of those that have ended.
    ended: Mapping[DeviceId, Tally]
    #: The last distinct times at which jobs ended, at most `PACE_WINDOW`.
    ends: Mapping[DeviceId, tuple[datetime, ...]]
    repeats: frozenset[_Repeat]
    #: Of jobs that run.
    active: Mapping[DeviceId, int]

    def tallies(self) -> dict[DeviceId, Tally]:
        """Return the tally of each device that has jobs."""
        return {device_id: self._tally(device_id, count) for device_id, count in self.jobs.items()}

    def tally(self) -> Tally:
        """Return the tally of all devices together."""
        total = Tally()
        for own in self.tallies().values():
            total.merge(own)
        return total

    def _tally(self, device_id: DeviceId, count: int) -> Tally:
        ended, tally = self.ended.get(device_id), Tally()
        if ended is not None:
            tally.merge(ended)
        active = self.active.get(device_id, 0)
        queued = count - active - tally.total
        for state, open_jobs in ((JobState.ACTIVE, active), (JobState.QUEUED, queued)):
            if open_jobs:
                tally.add(state, open_jobs, None)
        return tally


class RunningMatrices:
    """The running matrices that one farm process has counted. Threads may share it.

    A job that has ended never changes, and its end is an event of the same transaction. Writers have one
    lock, so jobs and events become visible in the order of their numbers: what was counted up to an event
    holds, and a look reads the events and jobs behind it. A writer without the lock, as PostgreSQL may have
    one for a moment, is counted when all is counted again.
    """

    def __init__(self) -> None:
        self._known: dict[MatrixId, tuple[float, RunningJobs]] = {}

    def find(self, connection: Connection, matrix_id: MatrixId) -> RunningJobs:
        """Return the jobs of a matrix."""
        last_event = connection.execute(sa.select(sa.func.max(events.c.event_id))).scalar() or 0
        counted_at, known = self._known.get(matrix_id, (0.0, None))
        now = time.monotonic()
        # The snapshot of a reader may be older than what another one has counted.
        is_usable = known is not None and 0 <= last_event - known.last_event <= MOST_EVENTS
        if known is None or not is_usable or now - counted_at > MAX_AGE_S:
            counted_at, found = now, _count(connection, matrix_id, last_event)
        else:
            found = _count_since(connection, matrix_id, known, last_event)
        if known is None or last_event >= known.last_event:
            kept = self._known if len(self._known) < _MAX_KNOWN else {}
            self._known = {**kept, matrix_id: (counted_at, found)}
        return found


def _count(connection: Connection, matrix_id: MatrixId, last_event: int) -> RunningJobs:
    """Count all jobs of a matrix."""
    tallies = tally_by_device(connection, matrix_id)
    ended: dict[DeviceId, Tally] = {}
    for device_id, tally in tallies.items():
        outcomes = {name: n for name, n in tally.jobs_by_outcome.items() if name not in _OPEN}
        if outcomes:
            ended[device_id] = Tally(jobs_by_outcome=outcomes, last_finished_at=tally.last_finished_at)
    times = last_finish_times(connection, matrix_id, limit=PACE_WINDOW)
    all_jobs = _behind(matrix_id, JobId(0))
    last_job = connection.execute(sa.select(sa.func.max(jobs.c.job_id)).where(all_jobs)).scalar()
    return RunningJobs(
        last_job=last_job or JobId(0),
        last_event=last_event,
        jobs={device_id: tally.total for device_id, tally in tallies.items()},
        ended=ended,
        ends={device_id: tuple(sorted(own)) for device_id, own in times.items()},
        repeats=_repeats(connection, all_jobs),
        active=_active(connection, matrix_id),
    )


_OPEN = (JobState.QUEUED, JobState.ACTIVE)


def _count_since(
    connection: Connection, matrix_id: MatrixId, known: RunningJobs, last_event: int
) -> RunningJobs:
    """Count what happened to the jobs of a matrix since it was counted."""
    new_jobs = _behind(matrix_id, known.last_job)
    added = sa.select(jobs.c.device_id, sa.func.count(), sa.func.max(jobs.c.job_id)).where(new_jobs)
    counts, last_job = dict(known.jobs), known.last_job
    for device_id, count, last in connection.execute(added.group_by(jobs.c.device_id)).all():
        counts[device_id] = counts.get(device_id, 0) + count
        last_job = max(last, last_job)
    repeats = known.repeats
    if last_job > known.last_job:
        repeats |= _repeats(connection, new_jobs)
    ended, ends = dict(known.ended), dict(known.ends)
    for device_id, own in _ended(connection, matrix_id, after=known.last_event, until=last_event).items():
        tally = Tally()
        tally.merge(ended.get(device_id, Tally()))
        for outcome, finished_at in own:
            tally.add(outcome, 1, finished_at)
        ended[device_id] = tally
        ends[device_id] = _newest(at for _, at in own for at in (at, *ends.get(device_id, ())))
    return replace(
        known,
        last_job=last_job,
        last_event=last_event,
        jobs=counts,
        ended=ended,
        ends=ends,
        repeats=repeats,
        active=_active(connection, matrix_id),
    )


def _newest(times: Iterable[datetime]) -> tuple[datetime, ...]:
    return tuple(sorted(set(times))[-PACE_WINDOW:])


def _behind(matrix_id: MatrixId, after: JobId) -> sa.ColumnElement[bool]:
    """Return the condition of the jobs of a matrix behind one: a range of its index for each state."""
    states = [literal(state) for state in JobState]
    return sa.and_(jobs.c.matrix_id == matrix_id, jobs.c.state.in_(states), jobs.c.job_id > after)


def _repeats(connection: Connection, which: sa.ColumnElement[bool]) -> frozenset[_Repeat]:
    query = sa.select(jobs.c.device_id, jobs.c.round, jobs.c.block, jobs.c.repeat).distinct()
    rows = connection.execute(query.where(which, jobs.c.repeat > 0)).all()
    return frozenset((row[0], row[1], row[2], row[3]) for row in rows)


def _ended(
    connection: Connection, matrix_id: MatrixId, *, after: int, until: int
) -> dict[DeviceId, list[tuple[str, datetime]]]:
    """Return by device the outcomes of the jobs of a matrix whose ends are events behind one."""
    of_ends = sa.select(sa.cast(events.c.subject_id, sa.BigInteger)).where(
        events.c.kind.in_([JobEvent.FINISHED, JobEvent.CANCELLED]),
        events.c.event_id > after,
        events.c.event_id <= until,
    )
    # Of any matrix: with a condition on it, SQLite would read all jobs of the matrix.
    query = sa.select(jobs.c.matrix_id, jobs.c.device_id, jobs.c.outcome, jobs.c.finished_at)
    found: defaultdict[DeviceId, list[tuple[str, datetime]]] = defaultdict(list)
    for of_matrix, device_id, outcome, finished_at in connection.execute(
        query.where(jobs.c.job_id.in_(of_ends))
    ).all():
        if of_matrix == matrix_id:
            found[device_id].append((outcome, finished_at))
    return dict(found)


def _active(connection: Connection, matrix_id: MatrixId) -> dict[DeviceId, int]:
    query = (
        sa.select(jobs.c.device_id, sa.func.count())
        .where(jobs.c.matrix_id == matrix_id, jobs.c.state == literal(JobState.ACTIVE))
        .group_by(jobs.c.device_id)
    )
    return {row[0]: row[1] for row in connection.execute(query).all()}
