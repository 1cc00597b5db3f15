"""Reasons why a job, or the rest of a matrix, is pending."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.core.checks.failures import Incident
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
#: The place in a queue behind which the exact number does not matter.
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
    queued = [job] if job.state is JobState.QUEUED else []
    before = job_counts.count_before(connection, queued, limit=MAX_COUNTED + 1).get(job_id, 0)
    running = {} if device.job_id is None else jobs.find_jobs(connection, [device.job_id])
    return JobPendingView.of(
        job,
        _state_origin(connection, job),
        device=device.name,
        reasons=tuple(_reasons(connection, job, device, _Fleet.of(connection))),
        jobs_before=min(before, MAX_COUNTED),
        more_before=before > MAX_COUNTED,
        running=_running_job(device, running),
    )


def matrix_waiting(connection: Connection, matrix_id: MatrixId) -> MatrixPendingView:
    """Return by device the jobs of a matrix that are left, and the reasons why they are pending.

    Raises like `get_matrix`.
    """
    matrix = get_matrix(connection, matrix_id)
    left = job_counts.open_jobs(connection, matrix_id)
    not_queued = sum(
        remaining.count
        for remaining in lazy_expansion.remaining_jobs(connection, matrix_id)
        if not remaining.is_cancelled
    )
    views = _devices_waiting(connection, left)
    return MatrixPendingView(
        matrix_id=matrix_id,
        name=matrix.name,
        left=sum(own.queued + (own.active is not None) for own in left.values()) + not_queued,
        not_queued=not_queued,
        moved_at=job_counts.last_progress_at(connection, matrix_id),
        devices=tuple(sorted(views, key=lambda view: all(reason.passes for reason in view.reasons))),
    )


def devices_waiting(
    connection: Connection, matrix_id: MatrixId, device_ids: Collection[DeviceId]
) -> list[DevicePendingView]:
    """Return why the queued jobs of a matrix wait on some devices; devices without such are missing."""
    return _devices_waiting(connection, job_counts.queued_jobs(connection, matrix_id, device_ids))


def _devices_waiting(
    connection: Connection, open_by_device: Mapping[DeviceId, OpenJobs]
) -> list[DevicePendingView]:
    """Return the pending reasons on each device. What keeps a device from work takes further statements."""
    if not open_by_device:
        return []
    fleet = _Fleet.of(connection)
    device_by_id = devices.devices_by_id(connection, open_by_device)
    first_ids = {device_id: own.active or own.first_queued for device_id, own in open_by_device.items()}
    wanted = {*first_ids.values(), *(device.job_id for device in device_by_id.values())}
    job_by_id = jobs.find_jobs(connection, {job_id for job_id in wanted if job_id is not None})
    first_by_device = {device_id: job_by_id[job_id] for device_id, job_id in first_ids.items() if job_id}
    queued = [job for job in first_by_device.values() if job.state is JobState.QUEUED]
    before_by_job = job_counts.count_before(connection, queued, limit=MAX_COUNTED + 1)
    views = []
    for device_id, own in open_by_device.items():
        device, first = device_by_id[device_id], first_by_device[device_id]
        before = before_by_job.get(first.job_id, 0)
        view = DevicePendingView.of(
            own,
            device_id=device_id,
            device=device.name,
            reasons=tuple(_reasons(connection, first, device, fleet)),
            jobs_before=min(before, MAX_COUNTED),
            more_before=before > MAX_COUNTED,
            running=_running_job(device, job_by_id),
        )
        views.append(view)
    return views


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fleet:
    """What keeps several devices from work at once."""

    load: Load
    incidents: Sequence[Incident]

    @classmethod
    def of(cls, connection: Connection) -> "_Fleet":
        """Read what is in use now, and what is wrong."""
        return cls(load=load_of(connection), incidents=incidents.open_incidents(connection))


def _reasons(connection: Connection, job: Job, device: Device, fleet: _Fleet) -> list[PendingReason]:
    match job.state:
        case JobState.FINISHED:
            return []
        case JobState.ACTIVE:
            return attempt_reasons(_live_attempt(connection, job, device))
        case JobState.QUEUED:
            all_blockers = blockers(fleet.load.state_of(device), check=job.kind is JobKind.CHECK)
            of_device = [
                blocker_reason(blocker, _place(device), blocked_since(connection, device, blocker))
                for blocker in actionable_first(all_blockers)
            ]
            off = find_deferral(connection, job)
            of_check = _of_check(connection, device) if _UNCHECKED & set(all_blockers) else []
            return [
                *_of_host(device, fleet.incidents),
                *of_device,
                *(of_check if job.kind is JobKind.BENCHMARK else []),
                *([] if off is None else [off.reason()]),
            ]


def _of_check(connection: Connection, device: Device) -> list[PendingReason]:
    """Return the deferral of the check without which a device gets no other job."""
    check = jobs.find_open_check(connection, device.device_id)
    off = None if check is None else find_deferral(connection, check)
    return [] if off is None else [off.reason("its check")]


def _of_host(device: Device, open_incidents: Sequence[Incident]) -> list[PendingReason]:
    """Return the incident of the device's host that keeps the device from work."""
    return [
        incident_reason(
            incident.kind, device.host_id, StateOrigin(since=incident.began_at, cause=incident.cause)
        )
        for incident in open_incidents
        if incident.host_id == device.host_id
        and (incident.kind is IncidentKind.PRESSURE or device.device_id in incident.devices)
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


def _running_job(device: Device, job_by_id: Mapping[JobId, Job]) -> RunningJobView | None:
    if device.job_id is None or device.last_attempt_id is None or device.claimed_at is None:
        return None
    job = job_by_id.get(device.job_id)
    return RunningJobView(
        job_id=device.job_id,
        matrix_id=None if job is None else job.matrix_id,
        attempt_id=device.last_attempt_id,
        phase=device.last_attempt_state or AttemptState.CLAIMED,
        claimed_at=device.claimed_at,
    )


def _place(device: Device) -> DeviceRef:
    return DeviceRef(name=quote(device.name), host=device.host_id, presence=device.presence)
