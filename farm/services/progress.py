"""How far a matrix is on each device, and how long it will still take."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from sqlalchemy.engine import Connection

from farm.core.estimate import left_s, pace_s
from farm.core.ids import CellId, DeviceId, MatrixId
from farm.core.job import JobState
from farm.core.waiting import PASSING
from farm.services.devices import waiting_reasons
from farm.store import job_counts
from farm.store.jobs import Job
from farm.store.matrices import CellRow
from farm.wire.views import DeviceProgress

_PASSING = {blocker.value for blocker in PASSING}
#: When each of a device's jobs ended; None for those that are left.
_Ends = Sequence[datetime | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """Seconds until the last job ends, None while nobody can say, and the devices that they leave out: those
    wait for a person or have shown no pace."""

    seconds: float | None = None
    without: tuple[DeviceId, ...] = ()


def device_progress(
    own_jobs: Sequence[Job],
    cells: Sequence[CellRow],
    waiting: Mapping[DeviceId, tuple[str, ...]],
    *,
    now: datetime,
) -> tuple[DeviceProgress, ...]:
    """By device, in the order of their ids."""
    label_by_cell = {cell.cell_id: cell.label for cell in cells}
    by_device: defaultdict[DeviceId, list[Job]] = defaultdict(list)
    for job in own_jobs:
        by_device[job.device_id].append(job)
    ends = {device_id: [job.finished_at for job in own] for device_id, own in by_device.items()}
    eta_by_device = _device_etas(ends, waiting, now)
    return tuple(
        _device_progress(
            device_id,
            by_device[device_id],
            label_by_cell,
            waiting.get(device_id, ()),
            eta_by_device[device_id],
        )
        for device_id in sorted(by_device)
    )


def eta_of(progress: Sequence[DeviceProgress]) -> Eta:
    """A matrix takes as long as its slowest device."""
    return _slowest({device.device_id: device.eta_s for device in progress})


def etas(connection: Connection, matrix_ids: Sequence[MatrixId], *, now: datetime) -> dict[MatrixId, Eta]:
    """How long matrices will still take, without reading their jobs whole."""
    waiting = waiting_reasons(connection) if matrix_ids else {}
    return {
        matrix_id: _slowest(_device_etas(job_counts.ends_by_device(connection, matrix_id), waiting, now))
        for matrix_id in matrix_ids
    }


def _device_progress(
    device_id: DeviceId,
    own: Sequence[Job],
    label_by_cell: Mapping[CellId, str],
    waiting: tuple[str, ...],
    eta_s: float | None,
) -> DeviceProgress:
    active = next((job for job in own if job.state is JobState.ACTIVE), None)
    finished = sum(1 for job in own if job.state is JobState.FINISHED)
    current = None
    if active is not None and active.cell_id is not None:
        current = f"round {active.round}, {label_by_cell[active.cell_id]}"
    return DeviceProgress(
        device_id=device_id,
        total=len(own),
        finished=finished,
        current=current,
        waiting_for=() if active is not None or finished == len(own) else waiting,
        eta_s=eta_s,
    )


def _device_etas(
    ends_by_device: Mapping[DeviceId, _Ends], waiting: Mapping[DeviceId, tuple[str, ...]], now: datetime
) -> dict[DeviceId, float | None]:
    """A device that has shown no pace yet is taken to have the others'."""
    paces = {device_id: pace_s(list(filter(None, ends))) for device_id, ends in ends_by_device.items()}
    known = [pace for pace in paces.values() if pace is not None]
    usual = median(known) if known else None
    return {
        device_id: _device_eta(ends, paces[device_id] or usual, waiting.get(device_id, ()), now)
        for device_id, ends in ends_by_device.items()
    }


def _device_eta(ends: _Ends, pace: float | None, waiting: Sequence[str], now: datetime) -> float | None:
    ended = [end for end in ends if end is not None]
    left = len(ends) - len(ended)
    if left == 0:
        return 0.0
    if pace is None or not _PASSING.issuperset(waiting):
        return None
    since_last_end_s = (now - max(ended)).total_seconds() if ended else 0.0
    return left_s(left, pace, since_last_end_s)


def _slowest(eta_by_device: Mapping[DeviceId, float | None]) -> Eta:
    known = [eta_s for eta_s in eta_by_device.values() if eta_s is not None]
    without = tuple(sorted(device_id for device_id, eta_s in eta_by_device.items() if eta_s is None))
    # Where only devices that are done are known, nothing is.
    if not any(known):
        return Eta(seconds=None if without else 0.0, without=without)
    return Eta(seconds=max(known), without=without)
