"""The points that changes are sought in, and the changes that are found."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

#: The variant that all others of its network are compared with.
BASELINE = "base"


class Cause(StrEnum):
    """What a change is attributed to."""

    #: The model file of a variant.
    FILE = "file"
    #: The program of a harness.
    PROGRAM = "program"
    #: The build of the operating system.
    OS = "os"
    #: A device, without a version that changed.
    DEVICE = "device"
    #: A slow change without a first day of a new level.
    DRIFT = "drift"
    #: How a device is measured: its control level.
    METHOD = "method"


class Point(NamedTuple):
    """One series in one session: one matrix on one device.

    Times are natural logarithms of any unit; NaN is a value that does not exist. A NamedTuple, because
    histories have millions of them.
    """

    series: str
    device: str
    network: str
    variant: str
    harness: str
    #: In days since any origin.
    day: int
    #: Orders the sessions of a day.
    time: str
    log_time: float
    se_time: float
    #: Of the paired ratio baseline / series: + is quicker. NaN for the baseline.
    log_speedup: float
    se_speedup: float
    #: Versions; an empty one is unknown, and equals each other.
    file: str
    program: str
    os: str
    #: Series of a device that were measured together have the same one; where it is empty, the first points
    #: of a day were, the second ones, and so on.
    session: str = ""
    #: The control level, a version as those above.
    method: str = ""

    @property
    def is_baseline(self) -> bool:
        """Return whether the other variants of its network are compared with this series."""
        return self.variant == BASELINE

    @property
    def has_value(self) -> bool:
        """Return whether the session yielded a time or a speedup."""
        return math.isfinite(self.log_time) or math.isfinite(self.log_speedup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A lasting change of one series, or of all series of a scope."""

    #: The one series that changed; None for several.
    series: str | None
    #: What the points of all changed series have: device, network, variant, program, os.
    #: Empty for one series.
    scope: Mapping[str, str]
    #: The first day of the new level, or of the drift.
    day: int
    #: The change of log time: + is slower. Of a drift, the change up to the day on which it was found.
    delta: float
    cause: Cause
    #: The day on which it was found, by points up to this day.
    told: int
    #: Standard errors that the change differs from none by.
    z: float
    #: The series whose values show it.
    evidence: Sequence[str]
    #: Standard error of `delta`, by the noise between sessions.
    se: float
    #: The new version that it is attributed to; None without one.
    version: str | None

    @property
    def delta_percent(self) -> float:
        """Return the change of time in percent: +100 is twice as slow."""
        return 100 * math.expm1(self.delta)
