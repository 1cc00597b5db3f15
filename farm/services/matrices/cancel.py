"""Ends what is left of a matrix: nothing more is started, and what runs is stopped."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.errors import NotFound
from farm.core.jobs.job import JobState
from farm.core.operations.event import EventSubject, WorkEvent
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
    """What cancelling has come to so far."""

    view: CancellationView
    #: Whether nothing is left to cancel. Until then, what is left may begin.
    is_done: bool


def cancel_matrix(
    connection: Connection,
    matrix_id: MatrixId,
    *,
    device: str | None = None,
    now: datetime,
    actor: str,
) -> CancellationView:
    """Finish what is queued or active as cancelled; what is finished stays as it is. Again changes nothing.

    What of a large matrix is not queued yet never will be.

    `device` is an id, a label, or the beginning of either. The attempt of an active job stays the lease of
    its phone until the agent, whose list names it no longer, has let go of it. It is neither retried nor
    held against the phone.

    Raises:
        NotFound: there is no such matrix or device, or the matrix has no jobs there.
        InvalidInput: several devices begin so.
    """
    return cancel_chunk(connection, matrix_id, device=device, limit=None, now=now, actor=actor).view


def cancel_chunk(
    connection: Connection,
    matrix_id: MatrixId,
    *,
    device: str | None = None,
    limit: int | None = CHUNK_JOBS,
    before: CancelProgress | None = None,
    now: datetime,
    actor: str,
) -> CancelProgress:
    """As `cancel_matrix`, one transaction of several: so many queued jobs, and with the last of them what is
    active. `before` is what the transaction before it came to.
    """
    matrix = get_matrix(connection, matrix_id)
    device_id = None if device is None else device_named(connection, device).device_id
    so_far = before.view if before is not None else _initial_progress(connection, matrix, device_id)
    never = lazy_expansion.cancel_lazy_expansion(connection, matrix_id, device_id=device_id, now=now)
    cancel = partial(jobs.cancel_jobs, connection, matrix_id, device_id=device_id, now=now, actor=actor)
    queued = cancel(JobState.QUEUED, limit=limit)
    is_done = limit is None or queued < limit
    active = cancel(JobState.ACTIVE) if is_done else 0
    view = so_far.model_copy(
        update={"queued": so_far.queued + queued + never, "active": so_far.active + active}
    )
    if is_done and (view.queued or view.active):
        record_event(
            connection,
            at=now,
            actor=actor,
            kind=WorkEvent.MATRIX_CANCELLED,
            subject=EventSubject.MATRIX,
            subject_id=matrix_id,
            cause=f"{device_id or 'all devices'}: {view.queued} queued and {view.active} active jobs",
        )
    return CancelProgress(view=view, is_done=is_done)


def _initial_progress(connection: Connection, matrix: Matrix, device_id: DeviceId | None) -> CancellationView:
    """Before anything is cancelled; refuses a device on which the matrix has nothing."""
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
    known = ", ".join(sorted(there | job_counts.tally_by_device(connection, matrix_id).keys()))
    return NotFound(f"matrix {matrix_id} has no jobs on {device}", hint=f"it has jobs on {known}")
