"""The states of a job, as data."""

from enum import StrEnum


class JobState(StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    #: It has a live attempt.
    ACTIVE = "active"
    FINISHED = "finished"


class JobEvent(StrEnum):
    """What happens to a job."""

    #: Its phone got it: an attempt of its own says how that goes.
    CLAIMED = "job_claimed"
    #: Its attempt ended without a verdict on the job, and budget remains.
    REQUEUED = "job_requeued"
    #: It has its outcome.
    FINISHED = "job_finished"
    #: Somebody ended it, or its phone was retired.
    CANCELLED = "job_cancelled"


class JobKind(StrEnum):
    """What a job is for."""

    BENCHMARK = "benchmark"
    #: A health check: how a phone earns its health.
    CHECK = "check"


TRANSITIONS: dict[tuple[JobState, JobEvent], JobState] = {
    (JobState.QUEUED, JobEvent.CLAIMED): JobState.ACTIVE,
    (JobState.QUEUED, JobEvent.CANCELLED): JobState.FINISHED,
    # A late report of the current attempt settles a job that was queued again meanwhile.
    (JobState.QUEUED, JobEvent.FINISHED): JobState.FINISHED,
    (JobState.ACTIVE, JobEvent.REQUEUED): JobState.QUEUED,
    (JobState.ACTIVE, JobEvent.FINISHED): JobState.FINISHED,
    (JobState.ACTIVE, JobEvent.CANCELLED): JobState.FINISHED,
}


def advance(state: JobState, event: JobEvent) -> JobState | None:
    """The state after an event; None when the event cannot happen there."""
    return TRANSITIONS.get((state, event))


def source_states(event: JobEvent) -> list[JobState]:
    """The states an event can happen in."""
    return [state for state, happening in TRANSITIONS if happening is event]
