"""Cancellation of a matrix: no further job is started, and running ones are stopped."""

from dataclasses import dataclass
from functools import partial

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.errors import NotFound
from farm.core.jobs.job import JobState
from farm.core.operations.event import WorkEvent
from farm.database.transaction import Tx
from farm.services.devices.views import device_named
from farm.store.jobs import counts as job_counts
from farm.store.jobs import jobs
from farm.store.matrices import lazy_expansion
from farm.store.matrices.matrices import Matrix, get_matrix
from farm.store.operations.events import record_event
from farm.wire.documents.matrices.plans import CancellationView

#: Jobs that one transaction cancels: agents wait for it no longer than for one of their own.
CHUNK_JOBS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelProgress:
    """The jobs cancelled so far."""

    view: CancellationView
    #: Nothing is left to cancel. Until then, the remaining jobs may start.
    is_done: bool


def cancel_chunk(
    tx: Tx,
    matrix_id: MatrixId,
    *,
    device: str | None = None,
    limit: int | None = CHUNK_JOBS,
    before: CancelProgress | None = None,
) -> CancelProgress:
    """Finish queued and active jobs as cancelled; finished ones stay. Doing it again changes nothing.

    This is one of several transactions: it cancels at most `limit` queued jobs, and the active ones with the
    last of them. `before` is the progress of the previous transaction. Jobs that are not queued yet never
    will be. The attempt of an active job stays the lease of its device until the agent, whose list no longer
    has it, has stopped it. It is neither retried nor counted against the device.

    Raises like `get_matrix` and `device_named`, and NotFound: the matrix has no jobs on the device.
    """
    matrix = get_matrix(tx.connection, matrix_id)
    device_id = None if device is None else device_named(tx.connection, device).device_id
    so_far = before.view if before is not None else _initial_progress(tx.connection, matrix, device_id)
    never = lazy_expansion.cancel_lazy_expansion(tx, matrix_id, device_id=device_id)
    cancel = partial(jobs.cancel_jobs, tx, matrix_id, device_id=device_id)
    queued = cancel(JobState.QUEUED, limit=limit)
    is_done = limit is None or queued < limit
    active = cancel(JobState.ACTIVE) if is_done else 0
    view = so_far.model_copy(
        update={"queued": so_far.queued + queued + never, "active": so_far.active + active}
    )
    if is_done and (view.queued or view.active):
        cause = f"{device_id or 'all devices'}: {view.queued} queued and {view.active} active jobs"
        record_event(tx, WorkEvent.MATRIX_CANCELLED, matrix_id, cause=cause)
    return CancelProgress(view=view, is_done=is_done)


def _initial_progress(connection: Connection, matrix: Matrix, device_id: DeviceId | None) -> CancellationView:
    """Return the progress before anything is cancelled; refuse a device on which the matrix has no jobs."""
    counts = job_counts.count_by_state(connection, matrix.matrix_id, device_id=device_id)
    to_come = {left.device_id for left in lazy_expansion.remaining_jobs(connection, matrix.matrix_id)}
    if device_id is not None and not counts and device_id not in to_come:
        raise _device_not_in_matrix(connection, matrix.matrix_id, device_id)
    finished = counts.get(JobState.FINISHED, 0)
    return CancellationView(
        matrix_id=matrix.matrix_id, name=matrix.name, queued=0, active=0, finished=finished
    )


def _device_not_in_matrix(connection: Connection, matrix_id: MatrixId, device: DeviceId) -> NotFound:
    there = {left.device_id for left in lazy_expansion.remaining_jobs(connection, matrix_id)}
    names = ", ".join(sorted(there | job_counts.tally_by_device(connection, matrix_id).keys()))
    return NotFound(f"matrix {matrix_id} has no jobs on {device}", hint=f"it has jobs on {names}")
