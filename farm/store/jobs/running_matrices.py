"""What the jobs of a running matrix come to: counted once by a process, and then what events tell of it."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.core.jobs.job import JobEvent, JobState
from farm.core.matrices.estimate import PACE_WINDOW
from farm.database.rows import is_among, rows_query, rows_text
from farm.database.tables import events, jobs, literal
from farm.store.jobs.counts import Tally, last_finish_times, tally_by_device

#: After so many events, all jobs are counted again.
MOST_EVENTS = 20_000
#: So are they after so many seconds, which is less than any rule of retention keeps events.
MAX_AGE_S = 600.0
#: Matrices that are remembered; beyond it, all are counted again.
_MAX_KNOWN = 200
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
        ended = self.ended.get(device_id, _NONE)
        active = self.active.get(device_id, 0)
        queued = count - active - ended.total
        still = {JobState.ACTIVE: active, JobState.QUEUED: queued}
        return Tally(
            jobs_by_outcome={
                **ended.jobs_by_outcome,
                **{str(state): open_jobs for state, open_jobs in still.items() if open_jobs},
            },
            last_finished_at=ended.last_finished_at,
        )


_NONE = Tally()


class RunningMatrices:
    """The running matrices that one farm process has counted. Threads may share it.

    A job that has ended never changes, and its end is an event of the same transaction. Writers have one
    lock, so jobs and events become visible in the order of their numbers: what was counted up to an event
    holds, and a look reads the events and jobs behind it. A writer without the lock, as PostgreSQL may have
    one for a moment, is counted when all is counted again.
    """

    def __init__(self) -> None:
        self._known: dict[MatrixId, tuple[float, RunningJobs]] = {}

    def find(self, connection: Connection, matrix_ids: Collection[MatrixId]) -> dict[MatrixId, RunningJobs]:
        """Return the jobs of some matrices."""
        last_event = connection.execute(sa.select(sa.func.max(events.c.event_id))).scalar() or 0
        now = time.monotonic()
        known: dict[MatrixId, RunningJobs] = {}
        counted_at: dict[MatrixId, float] = {}
        for matrix_id in matrix_ids:
            at, own = self._known.get(matrix_id, (now, None))
            # The snapshot of a reader may be older than what another one has counted.
            if own is not None and 0 <= last_event - own.last_event <= MOST_EVENTS and now - at <= MAX_AGE_S:
                known[matrix_id], counted_at[matrix_id] = own, at
        found = _count_since(connection, known, last_event) if known else {}
        found |= {
            matrix_id: _count(connection, matrix_id, last_event)
            for matrix_id in matrix_ids
            if matrix_id not in known
        }
        kept = self._known if len(self._known) < _MAX_KNOWN else {}
        newer = {
            matrix_id: (counted_at.get(matrix_id, now), own)
            for matrix_id, own in found.items()
            if matrix_id not in kept or kept[matrix_id][1].last_event <= own.last_event
        }
        self._known = {**kept, **newer}
        return found


def _count(connection: Connection, matrix_id: MatrixId, last_event: int) -> RunningJobs:
    """Count all jobs of a matrix."""
    tallies = tally_by_device(connection, matrix_id)
    ended: dict[DeviceId, Tally] = {}
    for device_id, tally in tallies.items():
        outcomes = {name: n for name, n in tally.jobs_by_outcome.items() if name not in _OPEN}
        if outcomes:
            ended[device_id] = Tally(jobs_by_outcome=outcomes, last_finished_at=tally.last_finished_at)
    times = last_finish_times(connection, matrix_id, limit=PACE_WINDOW) if ended else {}
    last_job = sa.select(sa.func.max(jobs.c.job_id)).where(jobs.c.matrix_id == matrix_id)
    return RunningJobs(
        last_job=connection.execute(last_job).scalar() or JobId(0) if tallies else JobId(0),
        last_event=last_event,
        jobs={device_id: tally.total for device_id, tally in tallies.items()},
        ended=ended,
        ends={device_id: tuple(sorted(own)) for device_id, own in times.items()},
        repeats=frozenset(_repeats(connection, {matrix_id: JobId(0)})[matrix_id]) if tallies else frozenset(),
        active={
            device_id: tally.jobs_by_outcome[JobState.ACTIVE]
            for device_id, tally in tallies.items()
            if JobState.ACTIVE in tally.jobs_by_outcome
        },
    )


_OPEN = (JobState.QUEUED, JobState.ACTIVE)


def _count_since(
    connection: Connection, known: Mapping[MatrixId, RunningJobs], last_event: int
) -> dict[MatrixId, RunningJobs]:
    """Count what happened to the jobs of matrices since they were counted, by a statement for each kind."""
    active = _active(connection, known)
    added = _added(connection, {matrix_id: own.last_job for matrix_id, own in known.items()})
    grown = {matrix_id: known[matrix_id].last_job for matrix_id in added}
    repeats = _repeats(connection, grown) if grown else {}
    ended = _ended(connection, known, until=last_event)
    return {
        matrix_id: _with_changes(
            replace(own, last_event=last_event, active=active.get(matrix_id, {})),
            added.get(matrix_id, ()),
            repeats.get(matrix_id, set()),
            ended.get(matrix_id, {}),
        )
        for matrix_id, own in known.items()
    }


def _with_changes(
    known: RunningJobs,
    added: Sequence[tuple[DeviceId, int, JobId]],
    repeats: Set[_Repeat],
    ended_since: Mapping[DeviceId, Sequence[tuple[str, datetime]]],
) -> RunningJobs:
    if not added and not ended_since:
        return known
    counts, ended, ends = dict(known.jobs), dict(known.ended), dict(known.ends)
    for device_id, count, _ in added:
        counts[device_id] = counts.get(device_id, 0) + count
    for device_id, own in ended_since.items():
        tally = Tally()
        tally.merge(ended.get(device_id, Tally()))
        for outcome, finished_at in own:
            tally.add(outcome, 1, finished_at)
        ended[device_id] = tally
        times = {*ends.get(device_id, ()), *(at for _, at in own)}
        ends[device_id] = tuple(sorted(times)[-PACE_WINDOW:])
    return replace(
        known,
        last_job=max([known.last_job, *(last for _, _, last in added)]),
        jobs=counts,
        ended=ended,
        ends=ends,
        repeats=known.repeats | repeats,
    )


_BEHIND = [sa.column(name, sa.BigInteger) for name in ("matrix_id", "job_id")]


def _behind(connection: Connection, last_jobs: Mapping[MatrixId, JobId]) -> sa.Join:
    """Return the jobs of matrices, of each behind one: a range of their index for each state."""
    rows = rows_text([*last_jobs.items()])
    asked = rows_query(connection.dialect.name, _BEHIND, rows).subquery()
    states = [literal(state) for state in JobState]
    is_behind = sa.and_(
        jobs.c.matrix_id == asked.c.matrix_id, jobs.c.state.in_(states), jobs.c.job_id > asked.c.job_id
    )
    return asked.join(jobs, is_behind)


def _added(
    connection: Connection, last_jobs: Mapping[MatrixId, JobId]
) -> dict[MatrixId, list[tuple[DeviceId, int, JobId]]]:
    """Return the number of new jobs of each device of a matrix, and the last one."""
    query = (
        sa.select(jobs.c.matrix_id, jobs.c.device_id, sa.func.count(), sa.func.max(jobs.c.job_id))
        .select_from(_behind(connection, last_jobs))
        .group_by(jobs.c.matrix_id, jobs.c.device_id)
    )
    found: defaultdict[MatrixId, list[tuple[DeviceId, int, JobId]]] = defaultdict(list)
    for matrix_id, device_id, count, last in connection.execute(query).all():
        found[matrix_id].append((device_id, count, last))
    return dict(found)


def _repeats(
    connection: Connection, last_jobs: Mapping[MatrixId, JobId]
) -> defaultdict[MatrixId, set[_Repeat]]:
    query = (
        sa.select(jobs.c.matrix_id, jobs.c.device_id, jobs.c.round, jobs.c.block, jobs.c.repeat)
        .distinct()
        .select_from(_behind(connection, last_jobs))
        .where(jobs.c.repeat > 0)
    )
    found: defaultdict[MatrixId, set[_Repeat]] = defaultdict(set)
    for matrix_id, device_id, round, block, repeat in connection.execute(query).all():
        found[matrix_id].add((device_id, round, block, repeat))
    return found


def _ended(
    connection: Connection, known: Mapping[MatrixId, RunningJobs], *, until: int
) -> dict[MatrixId, dict[DeviceId, list[tuple[str, datetime]]]]:
    """Return by matrix and device the outcomes of the jobs whose ends are events since they were counted."""
    query = (
        sa.select(events.c.event_id, jobs.c.matrix_id, jobs.c.device_id, jobs.c.outcome, jobs.c.finished_at)
        # Of any matrix: with a condition on it, SQLite would read all jobs of the matrix.
        .join(jobs, jobs.c.job_id == sa.cast(events.c.subject_id, sa.BigInteger))
        .where(
            events.c.kind.in_([JobEvent.FINISHED, JobEvent.CANCELLED]),
            events.c.event_id > min(own.last_event for own in known.values()),
            events.c.event_id <= until,
        )
    )
    found: dict[MatrixId, dict[DeviceId, list[tuple[str, datetime]]]] = {}
    for event_id, matrix_id, device_id, outcome, finished_at in connection.execute(query).all():
        if matrix_id in known and event_id > known[matrix_id].last_event:
            of_device = found.setdefault(matrix_id, {}).setdefault(device_id, [])
            of_device.append((outcome, finished_at))
    return found


def _active(connection: Connection, matrix_ids: Collection[MatrixId]) -> dict[MatrixId, dict[DeviceId, int]]:
    query = (
        sa.select(jobs.c.matrix_id, jobs.c.device_id, sa.func.count())
        .where(is_among(connection, jobs.c.matrix_id, matrix_ids), jobs.c.state == literal(JobState.ACTIVE))
        .group_by(jobs.c.matrix_id, jobs.c.device_id)
    )
    found: dict[MatrixId, dict[DeviceId, int]] = {}
    for matrix_id, device_id, count in connection.execute(query).all():
        found.setdefault(matrix_id, {})[device_id] = count
    return found
