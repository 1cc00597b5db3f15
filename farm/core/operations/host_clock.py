"""The difference between the clock of a host and the farm's, bounded by the round trip of the comparison."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

from farm.core.base.bounds import Range
from farm.core.jobs.timeouts import CLOCK_TOLERANCE

#: The span of dates that a time in UTC can have is 3.2 * 10^11 s; no clock is further off than that.
MAX_AHEAD_S = 4e11
#: No call of an agent takes longer.
MAX_UNCERTAINTY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockDifference:
    """How far the clock that dates a host's evidence is ahead of the farm's."""

    #: Sent as a part of a document: unknown keys are refused, as in every document of `farm.wire`.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    #: Negative where the host's is behind.
    ahead_s: Annotated[float, Range(-MAX_AHEAD_S, MAX_AHEAD_S)]
    #: The true difference is at most so far from `ahead_s`: half of the round trip.
    uncertainty_s: Annotated[float, Range(0.0, MAX_UNCERTAINTY_S)]

    @property
    def is_off(self) -> bool:
        """Return whether the clocks certainly differ by more than processes of one farm may.

        Nothing is decided by a host's clock. It dates evidence, which people read beside the farm's events.
        """
        return abs(self.ahead_s) - self.uncertainty_s > CLOCK_TOLERANCE.total_seconds()


def clock_difference(asked_at: datetime, farm_time: datetime, round_trip_s: float) -> ClockDifference:
    """Return the difference of two clocks from one call.

    Args:
        asked_at: when the call was made, by the host's clock.
        farm_time: the answer: the farm read its clock at some time during the call.
        round_trip_s: the duration of the call, by a monotonic clock.
    """
    half_s = round_trip_s / 2
    ahead_s = (asked_at - farm_time).total_seconds() + half_s
    return ClockDifference(ahead_s=ahead_s, uncertainty_s=min(half_s, MAX_UNCERTAINTY_S))
