"""A job, and its states as data."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from farm.core.base.ids import AttemptId, CellId, DeviceId, JobId, MatrixId
from farm.core.runs.measurement import Outcome


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    #: It has a live attempt.
    ACTIVE = "active"
    FINISHED = "finished"


class JobEvent(StrEnum):
    """Job events."""

    #: Its device got it: an attempt records its progress.
    CLAIMED = "job_claimed"
    #: Its attempt ended without a verdict on the job, and budget remains.
    REQUEUED = "job_requeued"
    #: It has its outcome.
    FINISHED = "job_finished"
    #: A user cancelled it, or its device was retired.
    CANCELLED = "job_cancelled"


class JobKind(StrEnum):
    """The purpose of a job."""

    BENCHMARK = "benchmark"
    #: A health check of a device.
    CHECK = "check"


TRANSITIONS: dict[tuple[JobState, JobEvent], JobState] = {
    (JobState.QUEUED, JobEvent.CLAIMED): JobState.ACTIVE,
    (JobState.QUEUED, JobEvent.CANCELLED): JobState.FINISHED,
    # A late report of the current attempt settles a job that was queued again.
    (JobState.QUEUED, JobEvent.FINISHED): JobState.FINISHED,
    (JobState.ACTIVE, JobEvent.REQUEUED): JobState.QUEUED,
    (JobState.ACTIVE, JobEvent.FINISHED): JobState.FINISHED,
    (JobState.ACTIVE, JobEvent.CANCELLED): JobState.FINISHED,
}


def advance(state: JobState, event: JobEvent) -> JobState | None:
    """Return the state after an event; None when the event cannot happen there."""
    return TRANSITIONS.get((state, event))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job, as it is stored."""

    job_id: JobId
    kind: JobKind
    device_id: DeviceId
    matrix_id: MatrixId | None
    cell_id: CellId | None
    round: int
    block: int
    repeat: int
    #: In the planned order of its block, from 1; None: a check, or older than this column.
    place: int | None
    priority: int
    virtual_time: int
    state: JobState
    outcome: Outcome | None
    code: str | None
    message: str | None
    attempt_id: AttemptId | None
    created_at: datetime
    finished_at: datetime | None
