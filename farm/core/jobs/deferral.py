"""When a job is tried again that its agent put off before anything of it ran."""

from datetime import datetime, timedelta

from farm.core.jobs.pending_reasons import Reason, Since

#: What an attempt ends with that its agent gave back, and a job that was given back too often.
PUT_OFF = "job.put_off"
#: Between two claims of such a job: the first pause, doubled each time, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)


def pause_after(give_backs: int) -> timedelta:
    """How long after its last claim a job is not claimed again.

    What its agent waited for the phone counts: after gates that were waited for so long, there is no pause.
    """
    doubled = max(0, give_backs - 1)
    longest = LONGEST_PAUSE // FIRST_PAUSE
    return LONGEST_PAUSE if doubled >= longest.bit_length() else min(LONGEST_PAUSE, FIRST_PAUSE * 2**doubled)


def put_off_reason(until: datetime, give_backs: int, *, since: Since) -> Reason:
    """Why a job waits that was put off, for a person."""
    times = "once" if give_backs == 1 else f"{give_backs} times"
    return Reason(
        code="put_off",
        message=f"it was put off {times}, and may be tried again from {until:%H:%M:%S} UTC on",
        hint="wait: pauses get longer, up to 5 min; `gates:` of the matrix has the limits",
        passes=True,
        since=since,
    )
