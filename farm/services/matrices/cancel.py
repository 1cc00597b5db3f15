"""Cancellation of a matrix: no further job is started, and running ones are stopped."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from sqlalchemy.engine import Connection

from farm.clock import Clock
from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.core.errors import NotFound
from farm.core.jobs.job import JobState
from farm.core.operations.event import WorkEvent
from farm.database.engine import Database
from farm.database.notifications import notify_all_hosts, notify_no_other_hosts
from farm.database.transaction import Tx, bind_tx
from farm.services.devices.views import device_id_named
from farm.store.jobs import counts as job_counts
from farm.store.jobs import jobs
from farm.store.matrices import lazy_expansion
from farm.store.matrices.cancellations import (
    Cancellation,
    drop_cancellation,
    find_cancellation,
    next_interrupted,
    put_cancellation,
)
from farm.store.matrices.matrices import get_matrix
from farm.store.matrices.round_growth import cancel_growth
from farm.store.operations.events import record_event
from farm.wire.documents.matrices.plans import CancellationView

#: Jobs that one transaction cancels: agents wait for it about as long as for one of their own.
CHUNK_JOBS = 3000
#: Time after which the farm takes a cancellation on that its request no longer continues.
INTERRUPTED_AFTER = timedelta(minutes=1)


def cancel_chunk(
    tx: Tx, matrix_id: MatrixId, *, device: str | None = None, limit: int | None = CHUNK_JOBS
) -> CancellationView:
    """Finish queued and active jobs as cancelled; finished ones stay. Doing it again changes nothing.

    This is one of several transactions: it cancels at most `limit` queued jobs, and the active ones with the
    last of them. Between two of them the database has the progress, so that a farm that is killed there goes
    on with it (`continue_cancellations`), and so does a repeated request. Jobs that are not queued yet never
    will be. The attempt of an active job stays the lease of its device until the agent, whose list no longer
    has it, has stopped it. It is neither retried nor counted against the device.

    Raises like `get_matrix` and `device_named`, and NotFound: the matrix has no jobs on the device.
    """
    matrix = get_matrix(tx.connection, matrix_id)
    device_id = None if device is None else device_id_named(tx.connection, device)
    going = find_cancellation(tx.connection, matrix_id, device_id)
    cancellation = going or _new_cancellation(tx, matrix_id, device_id)
    return _cancel_next(tx, replace(cancellation, continued_at=tx.now), name=matrix.name, limit=limit)


def continue_cancellations(database: Database, clock: Clock, *, limit: int = CHUNK_JOBS) -> None:
    """Finish the cancellations of requests that ended too early, such as with their farm. Blocks."""
    while database.read(bind_tx(_find_interrupted, now=clock.now())) is not None:
        database.write(bind_tx(_continue_next, now=clock.now()), limit)


def _continue_next(tx: Tx, limit: int) -> None:
    """Cancel the next jobs of an interrupted cancellation, if there is still one."""
    cancellation = _find_interrupted(tx)
    if cancellation is not None:
        name = get_matrix(tx.connection, cancellation.matrix_id).name
        _cancel_next(tx.by(cancellation.requested_by), cancellation, name=name, limit=limit)


def _find_interrupted(tx: Tx) -> Cancellation | None:
    return next_interrupted(tx, before=tx.now - INTERRUPTED_AFTER)


def _cancel_next(tx: Tx, cancellation: Cancellation, *, name: str, limit: int | None) -> CancellationView:
    matrix_id, device_id = cancellation.matrix_id, cancellation.device_id
    cancel = partial(jobs.cancel_jobs, tx, matrix_id, device_id=device_id)
    cancel_growth(tx, matrix_id, device_id=device_id)
    never = lazy_expansion.cancel_lazy_expansion(tx, matrix_id, device_id=device_id)
    queued = cancel(JobState.QUEUED, after=cancellation.after_job_id, limit=limit)
    is_done = limit is None or len(queued) < limit
    active: list[JobId] = []
    if is_done:
        # With those that returned to the queue behind the cursor.
        queued += cancel(JobState.QUEUED) if cancellation.after_job_id else []
        active = cancel(JobState.ACTIVE)
    cancellation = replace(
        cancellation,
        after_job_id=queued[-1] if queued else cancellation.after_job_id,
        cancelled_jobs=cancellation.cancelled_jobs + len(queued) + never,
    )
    if is_done:
        drop_cancellation(tx.connection, cancellation)
        _record_end(tx, cancellation, active_jobs=len(active))
        # Once for all: agents stop the active jobs, and devices behind a deferred one may get others.
        notify_all_hosts(tx.connection)
    else:
        put_cancellation(tx.connection, cancellation)
        notify_no_other_hosts(tx.connection)
    return CancellationView(
        matrix_id=matrix_id,
        name=name,
        queued=cancellation.cancelled_jobs,
        active=len(active),
        finished=cancellation.finished_jobs,
        is_done=is_done,
    )


def _record_end(tx: Tx, cancellation: Cancellation, *, active_jobs: int) -> None:
    """Record the cancellation, unless there was nothing to cancel."""
    queued_jobs = cancellation.cancelled_jobs
    if queued_jobs or active_jobs:
        where = cancellation.device_id or "all devices"
        cause = f"{where}: {queued_jobs} queued and {active_jobs} active jobs"
        record_event(tx, WorkEvent.MATRIX_CANCELLED, cancellation.matrix_id, cause=cause)


def _new_cancellation(tx: Tx, matrix_id: MatrixId, device_id: DeviceId | None) -> Cancellation:
    """Return a cancellation before its first transaction; refuse a device without jobs of the matrix."""
    counts = job_counts.count_by_state(tx.connection, matrix_id, device_id=device_id)
    to_come = {left.device_id for left in lazy_expansion.remaining_jobs(tx.connection, matrix_id)}
    if device_id is not None and not counts and device_id not in to_come:
        raise _device_not_in_matrix(tx.connection, matrix_id, device_id)
    return Cancellation(
        matrix_id=matrix_id,
        device_id=device_id,
        requested_by=tx.actor,
        continued_at=tx.now,
        after_job_id=JobId(0),
        cancelled_jobs=0,
        finished_jobs=counts.get(JobState.FINISHED, 0),
    )


def _device_not_in_matrix(connection: Connection, matrix_id: MatrixId, device: DeviceId) -> NotFound:
    there = {left.device_id for left in lazy_expansion.remaining_jobs(connection, matrix_id)}
    names = ", ".join(sorted(there | job_counts.tally_by_device(connection, matrix_id).keys()))
    return NotFound(f"matrix {matrix_id} has no jobs on {device}", hint=f"it has jobs on {names}")
