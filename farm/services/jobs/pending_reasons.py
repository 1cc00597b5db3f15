"""Reasons why a job, or the rest of a matrix, is pending."""

from datetime import datetime
from itertools import islice
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.ids import JobId, MatrixId
from farm.core.devices.device import Blocker, blockers
from farm.core.devices.host_state import IncidentKind
from farm.core.errors import NotFound
from farm.core.jobs.attempt import Attempt, AttemptState
from farm.core.jobs.job import Job, JobKind, JobState
from farm.core.jobs.pending_reasons import (
    DeviceRef,
    LiveAttempt,
    PendingReason,
    StateOrigin,
    actionable_first,
    attempt_reasons,
    blocker_reason,
    incident_reason,
)
from farm.core.operations.event import EventSubject
from farm.services.devices.views import Load, blocked_since, load_of
from farm.services.jobs.deferral import find_deferral
from farm.store.checks import incidents
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.hosts import hosts
from farm.store.jobs import attempts, jobs
from farm.store.jobs import counts as job_counts
from farm.store.jobs.counts import OpenJobs
from farm.store.matrices import lazy_expansion
from farm.store.matrices.matrices import get_matrix
from farm.store.operations.event_log import last_events
from farm.wire.documents.matrices.pending import (
    DevicePendingView,
    JobPendingView,
    MatrixPendingView,
    RunningJobView,
)

#: A check has to pass first.
_UNCHECKED = {Blocker.HEALTH_UNKNOWN, Blocker.HEALTH_SUSPECT}
#: Behind so many jobs the exact place does not matter.
MAX_COUNTED = 1000


def job_waiting(connection: Connection, job_id: JobId) -> JobPendingView:
    """Return the reasons why a job is pending; for a finished one, its end.

    Raises:
        NotFound: there is no such job.
    """
    job = jobs.find_job(connection, job_id)
    if job is None:
        raise NotFound(f"there is no job {job_id}", hint="`farm matrix jobs ID` lists a matrix's jobs")
    device = devices.get_device(connection, job.device_id)
    before = _jobs_before(connection, job) if job.state is JobState.QUEUED else 0
    return JobPendingView.of(
        job,
        _state_origin(connection, job),
        device=device.name,
        reasons=tuple(_reasons(connection, job, device, load_of(connection))),
        jobs_before=min(before, MAX_COUNTED),
        more_before=before > MAX_COUNTED,
        running=_running_job(connection, device),
    )


def matrix_waiting(
    connection: Connection, matrix_id: MatrixId, *, limit: int | None = None
) -> MatrixPendingView:
    """Return by device the jobs of a matrix that are left, and the reasons why they are pending.

    Of at most so many devices. Raises like `get_matrix`.
    """
    matrix = get_matrix(connection, matrix_id)
    load = load_of(connection)
    left = job_counts.open_jobs(connection, matrix_id)
    not_queued = sum(
        remaining.count
        for remaining in lazy_expansion.remaining_jobs(connection, matrix_id)
        if not remaining.is_cancelled
    )
    views = [
        _device_waiting(connection, devices.get_device(connection, device_id), own, load)
        for device_id, own in islice(left.items(), limit)
    ]
    return MatrixPendingView(
        matrix_id=matrix_id,
        name=matrix.name,
        left=sum(own.queued + (own.active is not None) for own in left.values()) + not_queued,
        not_queued=not_queued,
        moved_at=job_counts.last_progress_at(connection, matrix_id),
        devices=tuple(sorted(views, key=lambda view: all(reason.passes for reason in view.reasons))),
    )


def _device_waiting(connection: Connection, device: Device, own: OpenJobs, load: Load) -> DevicePendingView:
    first = jobs.find_job(connection, own.active or own.first_queued or JobId(0))
    assert first is not None, "a device without open jobs is not listed"
    before = _jobs_before(connection, first) if own.active is None else 0
    return DevicePendingView.of(
        own,
        device_id=device.device_id,
        device=device.name,
        reasons=tuple(_reasons(connection, first, device, load)),
        jobs_before=min(before, MAX_COUNTED),
        more_before=before > MAX_COUNTED,
        running=_running_job(connection, device),
    )


def _reasons(connection: Connection, job: Job, device: Device, load: Load) -> list[PendingReason]:
    match job.state:
        case JobState.FINISHED:
            return []
        case JobState.ACTIVE:
            return attempt_reasons(_live_attempt(connection, job, device))
        case JobState.QUEUED:
            all_blockers = blockers(load.state_of(device), check=job.kind is JobKind.CHECK)
            of_phone = [
                blocker_reason(blocker, _place(device), blocked_since(connection, device, blocker))
                for blocker in actionable_first(all_blockers)
            ]
            off = find_deferral(connection, job)
            of_check = _of_check(connection, device) if _UNCHECKED & set(all_blockers) else []
            return [
                *_of_host(connection, device),
                *of_phone,
                *(of_check if job.kind is JobKind.BENCHMARK else []),
                *([] if off is None else [off.reason()]),
            ]


def _of_check(connection: Connection, device: Device) -> list[PendingReason]:
    """Return the deferral of the check without which a device gets no other job."""
    check = jobs.find_open_check(connection, device.device_id)
    off = None if check is None else find_deferral(connection, check)
    return [] if off is None else [off.reason("its check")]


def _of_host(connection: Connection, device: Device) -> list[PendingReason]:
    """Return the incident of the device's host that keeps the device from work."""
    return [
        incident_reason(
            incident.kind, device.host_id, StateOrigin(since=incident.began_at, cause=incident.cause)
        )
        for incident in incidents.open_incidents(connection, device.host_id)
        if incident.kind is IncidentKind.PRESSURE or device.device_id in incident.devices
    ]


def _live_attempt(connection: Connection, job: Job, device: Device) -> LiveAttempt:
    """Return the attempt of an active job, which has one."""
    attempt = _current(connection, job)
    session = hosts.find_session(connection, attempt.session_id)
    assert session is not None, "attempts refer to their sessions"
    return LiveAttempt(
        state=attempt.state,
        since=_phase_since(connection, attempt),
        waiting_for=attempt.waiting_for,
        session=session.state,
        heartbeat_at=session.heartbeat_at,
        place=_place(device),
        gates_wait_s=attempt.plan.gates.wait_s,
        timeout_s=attempt.plan.timeout_s,
    )


def _current(connection: Connection, job: Job) -> Attempt:
    attempt = None if job.attempt_id is None else attempts.find_attempt(connection, job.attempt_id)
    assert isinstance(attempt, Attempt), "an active job has its attempt, with its plan"
    return attempt


def _phase_since(connection: Connection, attempt: Attempt) -> datetime:
    events = last_events(connection, EventSubject.ATTEMPT, attempt.attempt_id)
    return events[0].at if events else attempt.claimed_at


def _state_origin(connection: Connection, job: Job) -> StateOrigin:
    """Return the origin of the job's state: its last event, or its submission."""
    for event in last_events(connection, EventSubject.JOB, job.job_id):
        return StateOrigin(since=event.at, by=event.actor, cause=job.message or event.cause)
    return StateOrigin(since=job.created_at)


def _jobs_before(connection: Connection, job: Job) -> int:
    return job_counts.count_before(connection, job, limit=MAX_COUNTED + 1)


def _running_job(connection: Connection, device: Device) -> RunningJobView | None:
    if device.job_id is None or device.last_attempt_id is None or device.claimed_at is None:
        return None
    job = jobs.find_job(connection, device.job_id)
    return RunningJobView(
        job_id=device.job_id,
        matrix_id=None if job is None else job.matrix_id,
        attempt_id=device.last_attempt_id,
        phase=device.last_attempt_state or AttemptState.CLAIMED,
        claimed_at=device.claimed_at,
    )


def _place(device: Device) -> DeviceRef:
    return DeviceRef(name=quote(device.name), host=device.host_id, presence=device.presence)
