"""Progress of a matrix on each device, and the time until it ends."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.devices.device import Blocker
from farm.core.devices.remediation import MESSAGE_BY_BLOCKER
from farm.core.jobs.job import JobState
from farm.core.jobs.pending_reasons import TEMPORARY
from farm.core.matrices.estimate import remaining_s
from farm.core.runs.measurement import Outcome
from farm.database.transaction import Tx
from farm.services.devices.views import waiting_reasons
from farm.store.jobs import jobs as job_store
from farm.store.jobs.counted_matrices import CountedMatrices
from farm.store.jobs.counts import Tally
from farm.store.jobs.running_jobs import RunningJobs
from farm.store.matrices import lazy_expansion
from farm.store.matrices.lazy_expansion import RemainingJobs
from farm.store.matrices.matrices import Matrix
from farm.store.matrices.round_growth import further_jobs
from farm.wire.documents.matrices.matrices import DeviceProgress

#: Seconds until the last job ends: of those there are, and with all that may be added; None while unknown.
_Times = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """Seconds until the last job ends, None while unknown, and the devices that are left out: they wait for
    an operator or have finished no job."""

    seconds: float | None = None
    #: The same with all rounds that may be added.
    max_seconds: float | None = None
    without: tuple[DeviceId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningWork:
    """The jobs of a matrix that runs, queued yet or not."""

    counted: RunningJobs
    not_queued: Sequence[RemainingJobs]
    #: Jobs that may still be added where the matrix grows.
    further: Mapping[DeviceId, int]

    def tally(self) -> Tally:
        """Return the tally of all devices."""
        return _with_remaining(self.counted.tally(), self.not_queued)

    def tallies(self, *, after: DeviceId, limit: int | None) -> dict[DeviceId, Tally]:
        """Return the tallies of at most `limit` devices behind one, in the order of their ids."""
        not_queued: defaultdict[DeviceId, list[RemainingJobs]] = defaultdict(list)
        for left in self.not_queued:
            not_queued[left.device_id].append(left)
        behind = [device_id for device_id in {*self.counted.jobs, *not_queued} if device_id > after]
        return {
            device_id: _with_remaining(self.counted.tally_of(device_id), not_queued.get(device_id, ()))
            for device_id in (sorted(behind) if limit is None else nsmallest(limit, behind))
        }

    def left(self) -> dict[DeviceId, int]:
        """Return the number of jobs that are left, of devices on which some are, or may be added."""
        left = dict(self.counted.left)
        for part in self.not_queued:
            if not part.is_cancelled:
                left[part.device_id] = left.get(part.device_id, 0) + part.count
        growing = (device_id for device_id, further in self.further.items() if further)
        return {**{device_id: 0 for device_id in growing if device_id in self.counted.jobs}, **left}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixWork:
    """The jobs of some matrices: those that are there, are not queued yet, and may be added."""

    tallies: Mapping[MatrixId, Tally]
    #: Of those that run, or to which jobs will be added.
    running: Mapping[MatrixId, RunningJobs]
    not_queued: Mapping[MatrixId, Sequence[RemainingJobs]]
    further: Mapping[MatrixId, Mapping[DeviceId, int]]

    def tally(self, matrix_id: MatrixId) -> Tally:
        """Return the tally of a matrix."""
        return self.tallies.get(matrix_id, Tally())

    def is_open(self, matrix_id: MatrixId) -> bool:
        """Return whether jobs are left, or may be added."""
        return matrix_id in self.further or self.tally(matrix_id).is_open

    def state(self, matrix_id: MatrixId) -> str:
        """Return the state of a matrix as a word."""
        return matrix_state(self.tally(matrix_id), is_open=self.is_open(matrix_id))


def matrix_work(connection: Connection, page: Sequence[Matrix], counted: CountedMatrices) -> MatrixWork:
    """Return the jobs of some matrices; those of no others are counted: a farm may have millions."""
    matrix_ids = [matrix.matrix_id for matrix in page]
    finished = counted.finished.find(connection, matrix_ids)
    not_queued = lazy_expansion.remaining_jobs_by_matrix(connection, matrix_ids)
    further = further_of_growing(connection, page)
    # All stored jobs of a matrix may have ended while more are to come.
    over = [own for own in finished if own not in not_queued and own not in further]
    counted.running.forget(over)
    running = counted.running.find(
        connection, [matrix_id for matrix_id in matrix_ids if matrix_id not in over]
    )
    tallies = {matrix_id: own.tally() for matrix_id, own in running.items()}
    tallies |= {matrix_id: own.tally for matrix_id, own in finished.items()}
    for matrix_id, left in not_queued.items():
        tallies[matrix_id] = _with_remaining(tallies.get(matrix_id, Tally()), left)
    return MatrixWork(
        tallies=tallies,
        running=running,
        not_queued=not_queued,
        further=further,
    )


def _with_remaining(stored: Tally, left: Sequence[RemainingJobs]) -> Tally:
    tally = Tally()
    tally.merge(stored)
    for part in left:
        tally.add(Outcome.CANCELLED if part.is_cancelled else JobState.QUEUED, part.count, None)
    return tally


def further_of_growing(connection: Connection, page: Iterable[Matrix]) -> dict[MatrixId, dict[DeviceId, int]]:
    """Return by matrix and device the jobs that may still be added, as `further_jobs`; it counts cells."""
    growing = [own.matrix_id for own in page if own.max_rounds is not None and own.max_rounds > own.rounds]
    return further_jobs(connection, growing)


def matrix_state(tally: Tally, *, is_open: bool) -> str:
    """Return the state of a matrix as a word."""
    if is_open:
        return "running"
    return "cancelled" if tally.jobs_by_outcome.get(Outcome.CANCELLED) else "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What keeps the devices of a matrix from work, and the time until each of them ends."""

    #: Of devices on which jobs are left, or may be added; all others have ended.
    times: Mapping[DeviceId, _Times]
    waiting: Mapping[DeviceId, Sequence[Blocker]]

    def eta(self) -> Eta:
        """Return the time until the matrix ends: that of its slowest device."""
        return _slowest_device(self.times)


#: Of a matrix whose jobs have all ended.
ENDED = Outlook(times={}, waiting={})


def outlook_of(tx: Tx, work: RunningWork) -> Outlook:
    """Return what is ahead of a matrix that runs."""
    left = work.left()
    waiting = waiting_reasons(tx.connection, left)
    return Outlook(times=_device_etas(work, left, waiting, tx.now), waiting=waiting)


def device_progress(
    connection: Connection,
    matrix_id: MatrixId,
    tallies: Mapping[DeviceId, Tally],
    outlook: Outlook,
    labels: Mapping[DeviceId, str],
    *,
    further: Mapping[DeviceId, int],
) -> tuple[DeviceProgress, ...]:
    """Return the progress on some devices, in their order.

    Args:
        connection: the database.
        matrix_id: the matrix.
        tallies: of the devices.
        outlook: of all devices of the matrix.
        labels: of those that have one.
        further: jobs that may still be added where the matrix grows.
    """
    running = job_store.running_by_device(connection, matrix_id) if outlook.times else {}
    progress = []
    for device_id, tally in tallies.items():
        eta_s, max_eta_s = outlook.times.get(device_id, (0.0, 0.0))
        is_waiting = device_id not in running and tally.is_open
        reasons = outlook.waiting.get(device_id, ()) if is_waiting else ()
        progress.append(
            DeviceProgress(
                device_id=device_id,
                device_label=labels.get(device_id),
                total=tally.total,
                finished=tally.finished,
                cancelled=tally.jobs_by_outcome.get(Outcome.CANCELLED, 0),
                current=running.get(device_id),
                waiting_for=tuple(MESSAGE_BY_BLOCKER[blocker] for blocker in reasons),
                max_total=tally.total + further.get(device_id, 0),
                eta_s=eta_s,
                max_eta_s=max_eta_s,
            )
        )
    return tuple(progress)


def etas(tx: Tx, work: MatrixWork) -> dict[MatrixId, Eta]:
    """Return the times until matrices end that run."""
    works = {
        matrix_id: RunningWork(
            counted=counted,
            not_queued=work.not_queued.get(matrix_id, ()),
            further=work.further.get(matrix_id, {}),
        )
        for matrix_id, counted in work.running.items()
        if work.is_open(matrix_id)
    }
    lefts = {matrix_id: own.left() for matrix_id, own in works.items()}
    waiting = waiting_reasons(tx.connection, set().union(*lefts.values()))
    return {
        matrix_id: _slowest_device(_device_etas(own, lefts[matrix_id], waiting, tx.now))
        for matrix_id, own in works.items()
    }


def _device_etas(
    work: RunningWork,
    left: Mapping[DeviceId, int],
    waiting: Mapping[DeviceId, Sequence[Blocker]],
    now: datetime,
) -> dict[DeviceId, _Times]:
    """Return the times of devices; one without a finished job is given the median pace of the others."""
    paces, ends = work.counted.paces, work.counted.ends
    usual = median(paces.values()) if paces and not all(map(paces.get, left)) else None
    times: dict[DeviceId, _Times] = {}
    for device_id, jobs in left.items():
        pace = paces.get(device_id) or usual
        if pace is None or not TEMPORARY.issuperset(waiting.get(device_id, ())):
            times[device_id] = None, None
            continue
        since_last_end_s = (now - ends[device_id][-1]).total_seconds() if device_id in ends else 0.0
        left_s = remaining_s(jobs, pace, since_last_end_s)
        times[device_id] = left_s, left_s + work.further.get(device_id, 0) * pace
    return times


def _slowest_device(times_by_device: Mapping[DeviceId, _Times]) -> Eta:
    etas = [eta_s for eta_s, _ in times_by_device.values() if eta_s is not None]
    longest = [max_s for _, max_s in times_by_device.values() if max_s is not None]
    without = tuple(sorted(device_id for device_id, (eta_s, _) in times_by_device.items() if eta_s is None))
    # If all known devices are done, there is no estimate.
    if not any(longest):
        return Eta(seconds=None if without else 0.0, max_seconds=None if without else 0.0, without=without)
    return Eta(seconds=max(etas), max_seconds=max(longest), without=without)
