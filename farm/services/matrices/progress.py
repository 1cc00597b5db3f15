"""How far a matrix is on each device, and how long it will still take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.jobs.job import JobState
from farm.core.jobs.pending_reasons import TEMPORARY
from farm.core.matrices.estimate import PACE_WINDOW, pace_s, remaining_s
from farm.core.runs.measurement import Outcome
from farm.services.devices.views import waiting_reasons
from farm.store.jobs import counts as job_counts
from farm.store.jobs import pages as job_pages
from farm.store.jobs.counts import Tally
from farm.store.matrices.lazy_expansion import RemainingJobs
from farm.wire.documents.matrices.matrices import DeviceProgress

_PASSING = {blocker.value for blocker in TEMPORARY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """Seconds until the last job ends, None while nobody can say, and the devices that they leave out: those
    wait for a person or have shown no pace."""

    seconds: float | None = None
    without: tuple[DeviceId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWork:
    """What a matrix has on a device, queued by now or not."""

    tally: Tally
    #: When the last of its jobs ended.
    ends: Sequence[datetime]

    @property
    def left(self) -> int:
        """Jobs that have not ended."""
        return self.tally.total - self.tally.finished


def work_by_device(
    connection: Connection, matrix_id: MatrixId, not_queued: Sequence[RemainingJobs]
) -> dict[DeviceId, DeviceWork]:
    """What a matrix has on each of its devices; no job is read whole."""
    tallies = job_counts.tally_by_device(connection, matrix_id)
    ends = job_counts.last_finish_times(connection, matrix_id, limit=PACE_WINDOW)
    for left in not_queued:
        # What is queued later waits like the rest, and what never will be ended with its matrix.
        state = Outcome.CANCELLED if left.is_cancelled else JobState.QUEUED
        tallies.setdefault(left.device_id, Tally()).add(state, left.count, None)
    return {
        device_id: DeviceWork(tally=tally, ends=ends.get(device_id, ()))
        for device_id, tally in sorted(tallies.items())
    }


def device_progress(
    connection: Connection, matrix_id: MatrixId, work: Mapping[DeviceId, DeviceWork], *, now: datetime
) -> tuple[DeviceProgress, ...]:
    """By device, in the order of their ids."""
    waiting = waiting_reasons(connection)
    eta_by_device = _device_etas(work, waiting, now)
    running = job_pages.running_by_device(connection, matrix_id)
    return tuple(
        DeviceProgress(
            device_id=device_id,
            total=own.tally.total,
            finished=own.tally.finished,
            current=running.get(device_id),
            waiting_for=() if device_id in running or not own.left else waiting.get(device_id, ()),
            eta_s=eta_by_device[device_id],
        )
        for device_id, own in work.items()
    )


def eta_of(progress: Sequence[DeviceProgress]) -> Eta:
    """A matrix takes as long as its slowest device."""
    return _slowest({device.device_id: device.eta_s for device in progress})


def etas(
    connection: Connection,
    matrix_ids: Sequence[MatrixId],
    not_queued: Mapping[MatrixId, Sequence[RemainingJobs]],
    *,
    now: datetime,
) -> dict[MatrixId, Eta]:
    """How long matrices will still take, without reading their jobs whole."""
    waiting = waiting_reasons(connection) if matrix_ids else {}
    return {
        matrix_id: _slowest(
            _device_etas(work_by_device(connection, matrix_id, not_queued.get(matrix_id, ())), waiting, now)
        )
        for matrix_id in matrix_ids
    }


def _device_etas(
    work: Mapping[DeviceId, DeviceWork], waiting: Mapping[DeviceId, tuple[str, ...]], now: datetime
) -> dict[DeviceId, float | None]:
    """A device that has shown no pace yet is taken to have the others'."""
    paces = {device_id: pace_s(own.ends) for device_id, own in work.items()}
    known = [pace for pace in paces.values() if pace is not None]
    usual = median(known) if known else None
    return {
        device_id: _device_eta(own, paces[device_id] or usual, waiting.get(device_id, ()), now)
        for device_id, own in work.items()
    }


def _device_eta(work: DeviceWork, pace: float | None, waiting: Sequence[str], now: datetime) -> float | None:
    if work.left == 0:
        return 0.0
    if pace is None or not _PASSING.issuperset(waiting):
        return None
    since_last_end_s = (now - max(work.ends)).total_seconds() if work.ends else 0.0
    return remaining_s(work.left, pace, since_last_end_s)


def _slowest(eta_by_device: Mapping[DeviceId, float | None]) -> Eta:
    known = [eta_s for eta_s in eta_by_device.values() if eta_s is not None]
    without = tuple(sorted(device_id for device_id, eta_s in eta_by_device.items() if eta_s is None))
    # Where only devices that are done are known, nothing is.
    if not any(known):
        return Eta(seconds=None if without else 0.0, without=without)
    return Eta(seconds=max(known), without=without)
