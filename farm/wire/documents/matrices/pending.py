"""Documents about pending jobs and their reasons."""

from datetime import datetime

from farm.core.base.ids import AttemptId, DeviceId, JobId, MatrixId
from farm.core.jobs.job import JobState
from farm.core.jobs.pending_reasons import PendingReason
from farm.core.runs.measurement import Outcome
from farm.wire.base import Count, Wire


class RunningJobView(Wire):
    """The job that runs on a device now."""

    job_id: JobId
    #: None for a check.
    matrix_id: MatrixId | None
    attempt_id: AttemptId
    phase: str
    claimed_at: datetime


class JobPendingView(Wire):
    """GET /api/v1/jobs/{id}/waiting."""

    job_id: JobId
    matrix_id: MatrixId | None
    device_id: DeviceId
    #: The name of the device.
    device: str
    state: JobState
    outcome: Outcome | None
    #: Time and cause of its last change of state.
    since: datetime | None
    by: str | None
    cause: str | None
    #: The reasons that it waits, in order of their remedies; empty when it is finished, or when it is next.
    reasons: tuple[PendingReason, ...]
    #: Jobs that its device runs first; `more_before` when those are not all.
    jobs_before: Count
    more_before: bool
    #: The job that its device runs now; also when that is the job itself.
    running: RunningJobView | None


class DevicePendingView(Wire):
    """The pending reasons of a matrix on one device."""

    device_id: DeviceId
    device: str
    queued: Count
    #: The matrix's own job that is under way there.
    active: JobId | None
    reasons: tuple[PendingReason, ...]
    #: Jobs of others that go before its first one.
    jobs_before: Count
    more_before: bool
    running: RunningJobView | None


class MatrixPendingView(Wire):
    """GET /api/v1/matrices/{id}/waiting: the devices that need an operator first."""

    matrix_id: MatrixId
    name: str
    #: Jobs that are left, on all devices.
    left: Count
    #: Of those, the jobs that the farm has not queued yet.
    not_queued: Count = 0
    #: Time the last job of it began or ended.
    moved_at: datetime | None
    devices: tuple[DevicePendingView, ...]
