"""Documents about pending jobs and their reasons."""

from datetime import datetime

from farm.core.base.ids import AttemptId, DeviceId, JobId, MatrixId
from farm.core.jobs.job import JobState
from farm.core.runs.measurement import Outcome
from farm.wire.base import Count, Wire


class ReasonView(Wire):
    """One thing that a job waits for."""

    #: `cordoned`, `not_online`, `busy`, `gates_shut`, ...
    code: str
    message: str
    #: What to do about it.
    hint: str
    #: It goes without anybody's doing.
    passes: bool
    #: Since when, by whom and why, as far as somebody noted it.
    since: datetime | None
    by: str | None
    cause: str | None


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
    #: What people call the phone.
    device: str
    state: JobState
    outcome: Outcome | None
    #: Since when it is in this state, and how it came there.
    since: datetime | None
    by: str | None
    cause: str | None
    #: What is in its way, to be seen to in this order; empty when it is finished, or when it is next.
    reasons: tuple[ReasonView, ...]
    #: How many jobs its phone takes first; `more_before` when those are not all.
    jobs_before: Count
    more_before: bool
    #: What is on its phone now; also when that is the job itself.
    running: RunningJobView | None


class DevicePendingView(Wire):
    """The pending reasons of a matrix on one device."""

    device_id: DeviceId
    device: str
    queued: Count
    #: The matrix's own job that is under way there.
    active: JobId | None
    reasons: tuple[ReasonView, ...]
    #: Jobs of others that go before its first one.
    jobs_before: Count
    more_before: bool
    running: RunningJobView | None


class MatrixPendingView(Wire):
    """GET /api/v1/matrices/{id}/waiting: the phones that a person must see to first."""

    matrix_id: MatrixId
    name: str
    #: Jobs that are left, on all phones.
    left: Count
    #: Of those, what the farm has yet to put into their queues.
    not_queued: Count = 0
    #: When a job of it last began or ended.
    moved_at: datetime | None
    devices: tuple[DevicePendingView, ...]
