"""Ends what is left of a matrix: nothing more is started, and what runs is stopped."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.errors import NotFound
from farm.core.event import Subject, WorkEvent
from farm.core.ids import DeviceId, MatrixId
from farm.core.job import JobState
from farm.services.devices import device_named
from farm.services.matrices import get_matrix
from farm.store import job_counts, jobs, unfoldings
from farm.store.events import record_event
from farm.wire.matrix_views import CancelledView


def cancel_matrix(
    connection: Connection,
    matrix_id: MatrixId,
    *,
    device: str | None = None,
    now: datetime,
    actor: str,
) -> CancelledView:
    """Finish what is queued or active as cancelled; what is finished stays as it is. Again changes nothing.

    What of a large matrix is not queued yet never will be.

    `device` is an id, a label, or the beginning of either. The attempt of an active job stays the lease of
    its phone until the agent, whose list names it no longer, has let go of it. It is neither retried nor
    held against the phone.

    Raises:
        NotFound: there is no such matrix or device, or the matrix has no jobs there.
        InvalidInput: several devices begin so.
    """
    matrix = get_matrix(connection, matrix_id)
    device_id = None if device is None else device_named(connection, device).device_id
    count_by_state = job_counts.count_by_state(connection, matrix_id, device_id=device_id)
    not_queued = unfoldings.left_of(connection, matrix_id)
    if (
        device_id is not None
        and not count_by_state
        and device_id not in {left.device_id for left in not_queued}
    ):
        raise _not_there(connection, matrix_id, device_id)
    never = unfoldings.cancel_unfolding(connection, matrix_id=matrix_id, device_id=device_id, now=now)
    queued, active = (
        jobs.cancel_jobs(connection, matrix_id, state, device_id=device_id, now=now, actor=actor)
        for state in (JobState.QUEUED, JobState.ACTIVE)
    )
    if queued or active or never:
        record_event(
            connection,
            at=now,
            actor=actor,
            kind=WorkEvent.MATRIX_CANCELLED,
            subject=Subject.MATRIX,
            subject_id=matrix_id,
            cause=f"{device_id or 'all devices'}: {queued + never} queued and {active} active jobs",
        )
    finished = count_by_state.get(JobState.FINISHED, 0)
    return CancelledView(
        matrix_id=matrix_id, name=matrix.name, queued=queued + never, active=active, finished=finished
    )


def _not_there(connection: Connection, matrix_id: MatrixId, device: DeviceId) -> NotFound:
    there = {left.device_id for left in unfoldings.left_of(connection, matrix_id)}
    known = ", ".join(sorted(there | job_counts.tally_by_device(connection, matrix_id).keys()))
    return NotFound(f"matrix {matrix_id} has no jobs on {device}", hint=f"it has jobs on {known}")
