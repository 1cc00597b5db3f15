"""Progress of a matrix on each device, and the time until it ends."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.devices.device import Blocker
from farm.core.devices.remediation import MESSAGE_BY_BLOCKER
from farm.core.jobs.job import JobState
from farm.core.jobs.pending_reasons import TEMPORARY
from farm.core.matrices.estimate import pace_s, remaining_s
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
class DeviceWork:
    """The jobs of a matrix on a device, queued yet or not."""

    tally: Tally
    #: The times at which its latest jobs ended.
    ends: Sequence[datetime]
    #: Jobs that may still be added where the matrix grows.
    further: int = 0

    @property
    def left(self) -> int:
        """Return the number of jobs that have not ended."""
        return self.tally.total - self.tally.finished

    @property
    def is_open(self) -> bool:
        """Return whether jobs are left, or may be added."""
        return bool(self.left or self.further)


def work_by_device(
    counted: RunningJobs, not_queued: Sequence[RemainingJobs], further: Mapping[DeviceId, int]
) -> dict[DeviceId, DeviceWork]:
    """Return the jobs of a matrix by device, and those that may be added."""
    tallies = counted.tallies()
    for left in not_queued:
        # Jobs that are queued later wait like the rest, and those that never will be end with their matrix.
        state = Outcome.CANCELLED if left.is_cancelled else JobState.QUEUED
        tallies.setdefault(left.device_id, Tally()).add(state, left.count, None)
    return {
        device_id: DeviceWork(
            tally=tally, ends=counted.ends.get(device_id, ()), further=further.get(device_id, 0)
        )
        for device_id, tally in sorted(tallies.items())
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixWork:
    """The jobs of some matrices: those that are there, are not queued yet, and may be added."""

    tallies: Mapping[MatrixId, Tally]
    #: Of those that run, or to which jobs will be added.
    running: Mapping[MatrixId, RunningJobs]
    #: The number of cells of those whose jobs have all ended.
    cells: Mapping[MatrixId, int]
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
        cells={matrix_id: own.cells for matrix_id, own in finished.items()},
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


def device_progress(
    tx: Tx, matrix_id: MatrixId, work: Mapping[DeviceId, DeviceWork], labels: Mapping[DeviceId, str]
) -> tuple[DeviceProgress, ...]:
    """Return the progress on each device, in the order of their ids. `labels` are those of the devices."""
    waiting = waiting_reasons(tx.connection, _open_devices(work))
    eta_by_device = _device_etas(work, waiting, tx.now)
    running = job_store.running_by_device(tx.connection, matrix_id)
    return tuple(
        DeviceProgress(
            device_id=device_id,
            device_label=labels.get(device_id),
            total=own.tally.total,
            finished=own.tally.finished,
            current=running.get(device_id),
            waiting_for=()
            if device_id in running or not own.left
            else tuple(MESSAGE_BY_BLOCKER[blocker] for blocker in waiting.get(device_id, ())),
            max_total=own.tally.total + own.further,
            eta_s=eta_by_device[device_id][0],
            max_eta_s=eta_by_device[device_id][1],
        )
        for device_id, own in work.items()
    )


def eta_of(progress: Sequence[DeviceProgress]) -> Eta:
    """Return the time until a matrix ends: that of its slowest device."""
    return _slowest_device({device.device_id: (device.eta_s, device.max_eta_s) for device in progress})


def etas(tx: Tx, work: MatrixWork) -> dict[MatrixId, Eta]:
    """Return the times until matrices end that run."""
    works = {
        matrix_id: work_by_device(
            counted, work.not_queued.get(matrix_id, ()), work.further.get(matrix_id, {})
        )
        for matrix_id, counted in work.running.items()
        if work.is_open(matrix_id)
    }
    waiting = waiting_reasons(tx.connection, set().union(*map(_open_devices, works.values())))
    return {
        matrix_id: _slowest_device(_device_etas(own, waiting, tx.now)) for matrix_id, own in works.items()
    }


def _open_devices(work: Mapping[DeviceId, DeviceWork]) -> set[DeviceId]:
    return {device_id for device_id, own in work.items() if own.is_open}


def _device_etas(
    work: Mapping[DeviceId, DeviceWork], waiting: Mapping[DeviceId, Sequence[Blocker]], now: datetime
) -> dict[DeviceId, _Times]:
    """Return the times of each device; one without a finished job is given the median pace of the others."""
    paces = {device_id: pace_s(own.ends) for device_id, own in work.items() if own.is_open}
    usual = None
    if not all(paces.values()):
        measured = [pace for own in work.values() if (pace := pace_s(own.ends)) is not None]
        usual = median(measured) if measured else None
    return {
        device_id: _device_eta(own, paces.get(device_id) or usual, waiting.get(device_id, ()), now)
        for device_id, own in work.items()
    }


def _device_eta(work: DeviceWork, pace: float | None, waiting: Sequence[Blocker], now: datetime) -> _Times:
    if not work.is_open:
        return 0.0, 0.0
    if pace is None or not TEMPORARY.issuperset(waiting):
        return None, None
    since_last_end_s = (now - max(work.ends)).total_seconds() if work.ends else 0.0
    left_s = remaining_s(work.left, pace, since_last_end_s)
    return left_s, left_s + work.further * pace


def _slowest_device(times_by_device: Mapping[DeviceId, _Times]) -> Eta:
    etas = [eta_s for eta_s, _ in times_by_device.values() if eta_s is not None]
    longest = [max_s for _, max_s in times_by_device.values() if max_s is not None]
    without = tuple(sorted(device_id for device_id, (eta_s, _) in times_by_device.items() if eta_s is None))
    # If all known devices are done, there is no estimate.
    if not any(longest):
        return Eta(seconds=None if without else 0.0, max_seconds=None if without else 0.0, without=without)
    return Eta(seconds=max(etas), max_seconds=max(longest), without=without)
