"""Retry times of jobs that an agent deferred before any part of them ran."""

from datetime import datetime, timedelta

from farm.core.jobs.pending_reasons import PendingReason, StateOrigin

#: Code of an attempt that its agent returned, and of a job that was returned too often.
JOB_DEFERRED = "job.deferred"
#: Between two claims of such a job: the first pause, doubled each time, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)


def deferral_pause(return_count: int) -> timedelta:
    """Return how long after its last claim a deferred job is not claimed again.

    The agent's wait for the gates counts: after a wait that long, there is no pause.
    """
    doubled = max(0, return_count - 1)
    longest = LONGEST_PAUSE // FIRST_PAUSE
    return LONGEST_PAUSE if doubled >= longest.bit_length() else min(LONGEST_PAUSE, FIRST_PAUSE * 2**doubled)


def deferral_reason(until: datetime, return_count: int, *, since: StateOrigin) -> PendingReason:
    """Return the pending reason of a deferred job."""
    times = "once" if return_count == 1 else f"{return_count} times"
    return PendingReason(
        code="deferred",
        message=f"it was deferred {times}, and may be tried again from {until:%H:%M:%S} UTC on",
        hint="wait: pauses get longer, up to 5 min; `gates:` of the matrix has the limits",
        passes=True,
        since=since,
    )
