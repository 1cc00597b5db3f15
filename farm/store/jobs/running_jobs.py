"""Counts of the jobs of a running matrix: of all of them, and of what events tell since."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.core.jobs.job import JobEvent, JobState
from farm.core.matrices.estimate import PACE_WINDOW, pace_s
from farm.database.rows import is_among, rows_query, rows_text
from farm.database.tables import JOB_IS_QUEUED, events, jobs, literal
from farm.store.jobs.counts import Tally, last_finish_times, tally_by_device

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
    #: The number of those that have not ended, of devices that have such.
    left: Mapping[DeviceId, int]
    #: Of those that have ended.
    ended: Mapping[DeviceId, Tally]
    #: The same of all devices together.
    all_ended: Tally
    #: The last distinct times at which jobs ended in their order, at most `PACE_WINDOW`.
    ends: Mapping[DeviceId, tuple[datetime, ...]]
    #: Seconds from one end to the next, of devices that have two.
    paces: Mapping[DeviceId, float]
    repeats: frozenset[_Repeat]
    #: Of jobs that run.
    active: Mapping[DeviceId, int]

    def tally_of(self, device_id: DeviceId) -> Tally:
        """Return the tally of a device, empty where it has no jobs."""
        ended = self.ended.get(device_id, _NONE)
        return _with_open(ended, self.active.get(device_id, 0), self.left.get(device_id, 0))

    def tally(self) -> Tally:
        """Return the tally of all devices together."""
        return _with_open(self.all_ended, sum(self.active.values()), sum(self.left.values()))

    @property
    def queued(self) -> int:
        """Return the number of jobs that neither run nor have ended."""
        return sum(self.left.values()) - sum(self.active.values())


_NONE = Tally()


def _with_open(ended: Tally, active: int, left: int) -> Tally:
    """Return ended jobs with those that run, which are among those that are left."""
    still = {JobState.ACTIVE: active, JobState.QUEUED: left - active}
    return Tally(
        jobs_by_outcome={
            **ended.jobs_by_outcome,
            **{str(state): open_jobs for state, open_jobs in still.items() if open_jobs},
        },
        last_finished_at=ended.last_finished_at,
    )


def count_jobs(connection: Connection, matrix_id: MatrixId, last_event: int) -> RunningJobs:
    """Count all jobs of a matrix. `last_event` is the last one that the transaction sees."""
    tallies = tally_by_device(connection, matrix_id)
    ended: dict[DeviceId, Tally] = {}
    all_ended = Tally()
    for device_id, tally in tallies.items():
        outcomes = {name: n for name, n in tally.jobs_by_outcome.items() if name not in _OPEN}
        if outcomes:
            ended[device_id] = Tally(jobs_by_outcome=outcomes, last_finished_at=tally.last_finished_at)
            all_ended.merge(ended[device_id])
    times = last_finish_times(connection, matrix_id, limit=PACE_WINDOW) if ended else {}
    ends = {device_id: tuple(sorted(own)) for device_id, own in times.items()}
    paces = {device_id: pace_s(own) for device_id, own in ends.items()}
    last_job = sa.select(sa.func.max(jobs.c.job_id)).where(jobs.c.matrix_id == matrix_id)
    return RunningJobs(
        last_job=connection.execute(last_job).scalar() or JobId(0) if tallies else JobId(0),
        last_event=last_event,
        jobs={device_id: tally.total for device_id, tally in tallies.items()},
        left={
            device_id: tally.total - tally.finished for device_id, tally in tallies.items() if tally.is_open
        },
        ended=ended,
        all_ended=all_ended,
        ends=ends,
        paces={device_id: pace for device_id, pace in paces.items() if pace is not None},
        repeats=frozenset(_repeats(connection, {matrix_id: JobId(0)})[matrix_id]) if tallies else frozenset(),
        active={
            device_id: tally.jobs_by_outcome[JobState.ACTIVE]
            for device_id, tally in tallies.items()
            if JobState.ACTIVE in tally.jobs_by_outcome
        },
    )


_OPEN = (JobState.QUEUED, JobState.ACTIVE)


def count_since(
    connection: Connection,
    known: Mapping[MatrixId, RunningJobs],
    most_ends: Mapping[MatrixId, int],
    last_event: int,
) -> dict[MatrixId, RunningJobs]:
    """Count what happened to the jobs of matrices since they were counted, by a statement for each kind.

    Matrices are missing behind whose last event more than `most_ends` jobs of the farm ended, and those for
    which the numbers contradict each other.
    """
    ended = _ended(connection, known, most_ends, until=last_event)
    if not ended:
        return {}
    active = _active(connection, ended)
    added = _added(connection, {matrix_id: known[matrix_id].last_job for matrix_id in ended})
    grown = {matrix_id: known[matrix_id].last_job for matrix_id in added}
    repeats = _repeats(connection, grown) if grown else {}
    found = {
        matrix_id: _with_changes(
            replace(known[matrix_id], last_event=last_event, active=active.get(matrix_id, {})),
            added.get(matrix_id, ()),
            repeats.get(matrix_id, set()),
            own,
        )
        for matrix_id, own in ended.items()
    }
    if connection.dialect.name == "sqlite":
        return found
    # Not all writers are in order there. A missed end and a missed job of one matrix would hide each other.
    queued = _queued(connection, found)
    return {matrix_id: own for matrix_id, own in found.items() if own.queued == queued.get(matrix_id, 0)}


def _with_changes(
    known: RunningJobs,
    added: Sequence[tuple[DeviceId, int, JobId]],
    repeats: Set[_Repeat],
    ended_since: Mapping[DeviceId, Sequence[tuple[str, datetime]]],
) -> RunningJobs:
    if not added and not ended_since:
        return known
    counts, left, ended, ends = dict(known.jobs), dict(known.left), dict(known.ended), dict(known.ends)
    paces, all_ended = dict(known.paces), known.all_ended.copy()
    for device_id, count, _ in added:
        counts[device_id] = counts.get(device_id, 0) + count
        left[device_id] = left.get(device_id, 0) + count
    for device_id, own in ended_since.items():
        ended[device_id] = ended.get(device_id, _NONE).copy()
        for outcome, finished_at in own:
            ended[device_id].add(outcome, 1, finished_at)
            all_ended.add(outcome, 1, finished_at)
        times = {*ends.get(device_id, ()), *(at for _, at in own)}
        ends[device_id] = tuple(sorted(times)[-PACE_WINDOW:])
        if (pace := pace_s(ends[device_id])) is not None:
            paces[device_id] = pace
        left[device_id] = left.get(device_id, 0) - len(own)
        if not left[device_id]:
            del left[device_id]
    return replace(
        known,
        last_job=max([known.last_job, *(last for _, _, last in added)]),
        jobs=counts,
        left=left,
        ended=ended,
        all_ended=all_ended,
        ends=ends,
        paces=paces,
        repeats=known.repeats | repeats,
    )


_BEHIND = [sa.column(name, sa.BigInteger) for name in ("matrix_id", "job_id")]


def _behind(dialect_name: str) -> sa.Join:
    """Return the jobs of matrices, of each behind one: a range of their index for each state.

    The matrices, each with a job, are the parameter `rows` of an execution.
    """
    asked = rows_query(dialect_name, _BEHIND, "[]").subquery()
    states = [literal(state) for state in JobState]
    is_behind = sa.and_(
        jobs.c.matrix_id == asked.c.matrix_id, jobs.c.state.in_(states), jobs.c.job_id > asked.c.job_id
    )
    return asked.join(jobs, is_behind)


# Each page that shows a matrix that runs asks these: to make them takes longer than to run them.
@cache
def _added_query(dialect_name: str) -> sa.Select[Any]:
    return (
        sa.select(jobs.c.matrix_id, jobs.c.device_id, sa.func.count(), sa.func.max(jobs.c.job_id))
        .select_from(_behind(dialect_name))
        .group_by(jobs.c.matrix_id, jobs.c.device_id)
    )


def _added(
    connection: Connection, last_jobs: Mapping[MatrixId, JobId]
) -> dict[MatrixId, list[tuple[DeviceId, int, JobId]]]:
    """Return the number of new jobs of each device of a matrix, and the last one."""
    query, rows = _added_query(connection.dialect.name), rows_text([*last_jobs.items()])
    found: defaultdict[MatrixId, list[tuple[DeviceId, int, JobId]]] = defaultdict(list)
    for matrix_id, device_id, count, last in connection.execute(query, {"rows": rows}).all():
        found[matrix_id].append((device_id, count, last))
    return dict(found)


def _repeats(
    connection: Connection, last_jobs: Mapping[MatrixId, JobId]
) -> defaultdict[MatrixId, set[_Repeat]]:
    query = (
        sa.select(jobs.c.matrix_id, jobs.c.device_id, jobs.c.round, jobs.c.block, jobs.c.repeat)
        .distinct()
        .select_from(_behind(connection.dialect.name))
        .where(jobs.c.repeat > 0)
    )
    rows = rows_text([*last_jobs.items()])
    found: defaultdict[MatrixId, set[_Repeat]] = defaultdict(set)
    for matrix_id, device_id, round, block, repeat in connection.execute(query, {"rows": rows}).all():
        found[matrix_id].add((device_id, round, block, repeat))
    return found


@cache
def _ended_query() -> sa.Select[Any]:
    """Return the query of the newest ends of jobs, `most` at most, between two events."""
    since, until, most = (sa.bindparam(name, type_=sa.BigInteger()) for name in ("since", "until", "most"))
    newest = [
        sa.select(events.c.event_id, events.c.subject_id)
        .where(events.c.kind == kind, events.c.event_id > since, events.c.event_id <= until)
        .order_by(events.c.event_id.desc())
        .limit(most)
        .subquery()
        for kind in (JobEvent.FINISHED, JobEvent.CANCELLED)
    ]
    ends = sa.union_all(*(sa.select(own) for own in newest)).subquery()
    # Of any matrix: with a condition on it, SQLite would read all jobs of the matrix.
    return sa.select(
        ends.c.event_id, jobs.c.matrix_id, jobs.c.device_id, jobs.c.outcome, jobs.c.finished_at
    ).outerjoin_from(ends, jobs, jobs.c.job_id == sa.cast(ends.c.subject_id, sa.BigInteger))


def _ended(
    connection: Connection,
    known: Mapping[MatrixId, RunningJobs],
    most_ends: Mapping[MatrixId, int],
    *,
    until: int,
) -> dict[MatrixId, dict[DeviceId, list[tuple[str, datetime]]]]:
    """Return by matrix and device the outcomes of the jobs whose ends are events since they were counted.

    Matrices behind whose last event more than `most_ends` jobs of any matrix ended are missing.
    """
    since = min(own.last_event for own in known.values())
    between = {"since": since, "until": until, "most": max(most_ends.values()) + 1}
    rows = connection.execute(_ended_query(), between).all()
    event_ids = sorted(row.event_id for row in rows)
    found: dict[MatrixId, dict[DeviceId, list[tuple[str, datetime]]]] = {
        matrix_id: {}
        for matrix_id, own in known.items()
        if len(rows) - bisect_right(event_ids, own.last_event) <= most_ends[matrix_id]
    }
    for event_id, matrix_id, device_id, outcome, finished_at in rows:
        if matrix_id in found and event_id > known[matrix_id].last_event:
            found[matrix_id].setdefault(device_id, []).append((outcome, finished_at))
    return found


def _queued(connection: Connection, matrix_ids: Collection[MatrixId]) -> dict[MatrixId, int]:
    query = (
        sa.select(jobs.c.matrix_id, sa.func.count().label("jobs"))
        .where(is_among(connection, jobs.c.matrix_id, matrix_ids), JOB_IS_QUEUED)
        .group_by(jobs.c.matrix_id)
    )
    return {row.matrix_id: row.jobs for row in connection.execute(query)}


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
