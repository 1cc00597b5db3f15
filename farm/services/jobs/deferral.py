"""Jobs that their agents put off: a phone that is not fit is not asked again at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.jobs.attempt import Attempt, AttemptState
from farm.core.jobs.deferral import JOB_DEFERRED, deferral_pause, deferral_reason
from farm.core.jobs.job import Job
from farm.core.jobs.pending_reasons import PendingReason, StateOrigin
from farm.store.jobs import attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """A queued job whose last attempt its agent gave back."""

    last: Attempt
    return_count: int

    @property
    def until(self) -> datetime:
        """Nobody gets the job before."""
        return self.last.claimed_at + deferral_pause(self.return_count)

    @property
    def reason(self) -> PendingReason:
        """For a person who asks why the job waits."""
        since = StateOrigin(
            at=self.last.finished_at, by=f"agent:{self.last.host_id}", cause=self.last.message
        )
        return deferral_reason(self.until, self.return_count, since=since)


def find_deferral(connection: Connection, job: Job) -> Deferral | None:
    """Of a queued job, how it was put off; None where its last attempt ended otherwise, or there was none."""
    last = None if job.attempt_id is None else attempts.find_attempt(connection, job.attempt_id)
    if last is None or last.state is not AttemptState.RETURNED or last.code != JOB_DEFERRED:
        return None
    return_count = attempts.count_attempts(connection, job.job_id, AttemptState.RETURNED)
    return Deferral(last=last, return_count=return_count)


def due_jobs(
    connection: Connection, job_by_device: Mapping[DeviceId, Job], *, now: datetime
) -> dict[DeviceId, Job]:
    """Without the devices whose next job is to pause. Others of their queues wait, too: rounds stay whole."""
    found = {device_id: (job, find_deferral(connection, job)) for device_id, job in job_by_device.items()}
    return {device_id: job for device_id, (job, off) in found.items() if off is None or off.until <= now}
