"""Retry times of jobs that an agent deferred before any part of them ran."""

from datetime import datetime, timedelta

from farm.core.jobs.pending_reasons import PendingReason, StateOrigin

#: What an attempt ends with that its agent gave back, and a job that was given back too often.
JOB_DEFERRED = "job.deferred"
#: Between two claims of such a job: the first pause, doubled each time, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)


def deferral_pause(return_count: int) -> timedelta:
    """Return how long after its last claim a deferred job is not claimed again.

    What its agent waited for the phone counts: after gates that were waited for so long, there is no pause.
    """
    doubled = max(0, return_count - 1)
    longest = LONGEST_PAUSE // FIRST_PAUSE
    return LONGEST_PAUSE if doubled >= longest.bit_length() else min(LONGEST_PAUSE, FIRST_PAUSE * 2**doubled)


def deferral_reason(until: datetime, return_count: int, *, since: StateOrigin) -> PendingReason:
    """Return the pending reason of a deferred job."""
    times = "once" if return_count == 1 else f"{return_count} times"
    return PendingReason(
        code="defer",
        message=f"it was put off {times}, and may be tried again from {until:%H:%M:%S} UTC on",
        hint="wait: pauses get longer, up to 5 min; `gates:` of the matrix has the limits",
        passes=True,
        since=since,
    )
