"""Deferred jobs: a device that was not fit for a job gets it again after a pause."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.jobs.attempt import AttemptRecord, AttemptState
from farm.core.jobs.job import Job
from farm.core.jobs.pending_reasons import PendingReason, StateOrigin
from farm.core.jobs.retry import JOB_DEFERRED, deferral_pause, deferral_reason
from farm.database.transaction import Tx
from farm.store.jobs import attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """The deferral of a queued job whose last attempt its agent returned."""

    last: AttemptRecord
    return_count: int

    @property
    def until(self) -> datetime:
        """Return the time before which the job is not claimed."""
        return self.last.claimed_at + deferral_pause(self.return_count)

    def reason(self, subject: str = "it") -> PendingReason:
        """Return the reason that is shown for the pending job, or for one that waits for it."""
        origin = StateOrigin(
            since=self.last.finished_at, by=f"agent:{self.last.host_id}", cause=self.last.message
        )
        return deferral_reason(self.until, self.return_count, origin=origin, subject=subject)


def find_deferral(connection: Connection, job: Job) -> Deferral | None:
    """Return the deferral of a queued job; None where its last attempt ended otherwise, or there was none."""
    last = None if job.attempt_id is None else attempts.find_attempt(connection, job.attempt_id)
    if last is None or last.state is not AttemptState.RETURNED or last.code != JOB_DEFERRED:
        return None
    return_count = attempts.count_attempts(connection, job.job_id, AttemptState.RETURNED)
    return Deferral(last=last, return_count=return_count)


def due_jobs(tx: Tx, job_by_device: Mapping[DeviceId, Job]) -> dict[DeviceId, Job]:
    """Return the jobs without those that pause. Jobs behind one that pauses wait, too: rounds stay whole."""
    deferrals = {device_id: find_deferral(tx.connection, job) for device_id, job in job_by_device.items()}
    paused = {device_id for device_id, deferral in deferrals.items() if deferral and deferral.until > tx.now}
    return {device_id: job for device_id, job in job_by_device.items() if device_id not in paused}
