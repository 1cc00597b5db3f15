"""Runs that went on while their agent was silent: lost, and yet wanted (FAULTS 25)."""

from collections.abc import Collection, Sequence

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, HostId
from farm.core.jobs.attempt import Attempt, AttemptRecord, AttemptState
from farm.core.jobs.job import JobState
from farm.store.devices import devices
from farm.store.jobs import attempts, jobs
from farm.wire.agents.protocol import AttemptReport

#: A run that has begun; what was only being prepared is begun again at less cost.
_STARTED = (AttemptState.MEASURING, AttemptState.REPORTING)


def orphaned_runs(
    connection: Connection,
    host_id: HostId,
    reports: Sequence[AttemptReport],
    *,
    live: Collection[AttemptId],
) -> list[AttemptRecord]:
    """Return lost attempts that a host still runs and that were not replaced: their reports will count.

    They stay lost: a lost attempt changes by its own late report alone (I6). Their phones get nothing else
    until then, as they are not cleaned up. `live` are the attempts that need no such permission.
    """
    begun = [report for report in reports if report.phase in _STARTED and report.attempt_id not in live]
    stored = (attempts.find_attempt(connection, report.attempt_id) for report in begun)
    fence_by_id = {report.attempt_id: report.fence for report in begun}
    return [
        attempt
        for attempt in stored
        if isinstance(attempt, Attempt)
        and (attempt.host_id, attempt.fence) == (host_id, fence_by_id[attempt.attempt_id])
        and _is_unsuperseded(connection, attempt)
    ]


def _is_unsuperseded(connection: Connection, attempt: AttemptRecord) -> bool:
    if attempt.state is not AttemptState.LOST:
        return False
    job = jobs.find_job(connection, attempt.job_id)
    if job is None or job.state is not JobState.QUEUED or job.attempt_id != attempt.attempt_id:
        return False
    device = devices.get_device(connection, attempt.device_id)
    return device.host_id == attempt.host_id and device.cleaned_fence < attempt.fence
