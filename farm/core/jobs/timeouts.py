"""Time-outs after which the farm considers an agent silent or lost."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTimeouts:
    """Invariant: a grant is not started once the farm may have taken it back.

    An agent calls every 10 s at least, so that it may miss five calls before it is silent.
    """

    #: Without a call for so long an agent is silent; its work is left to it.
    silent_after: timedelta = timedelta(seconds=60)
    #: So much later it is lost, with all its running attempts.
    lost_after: timedelta = timedelta(seconds=300)
    #: A grant without a reported start is taken back.
    unstarted_after: timedelta = timedelta(seconds=120)
    #: An agent that has not started a grant for so long, counted from its request, asks again first.
    start_within: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        if not timedelta(0) < self.start_within < self.unstarted_after:
            raise ValueError("a grant must be taken back later than it may be started")
        if not timedelta(0) < self.silent_after < self.lost_after:
            raise ValueError("an agent is silent before it is lost")


DEFAULT_TIMEOUTS = AgentTimeouts()
#: Tolerance of a deadline: a twelfth of the shortest, after which a session is called silent.
CLOCK_TOLERANCE = timedelta(seconds=5)
