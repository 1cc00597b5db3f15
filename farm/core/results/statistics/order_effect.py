"""Effects of the order of starts on their times, and when they are an operator's business."""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

#: With fewer blocks, nothing is tested.
MIN_BLOCKS = 5
#: Of both tests together, and the smallest change of a ratio that matters, as a fraction.
ALARM_LEVEL, ALARM_EFFECT = 0.001, 0.01
#: An alarm lasts for as long as the effect is likelier than this.
CLEAR_LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedStart:
    """One start on a device, among all of them in the order in which they ran."""

    matrix: Hashable
    #: Of the matrix; and what it is in any matrix.
    cell: Hashable
    series: Hashable
    #: Of the matrix: its round, number and repeat.
    block: Hashable
    #: The logarithm of its time; None where it does not count; it is still a predecessor.
    log: float | None
    #: Whether nothing came between the start before it and this one: no health check, no restart.
    follows: bool


class OrderEffectKind(StrEnum):
    """What shows in the time."""

    PREDECESSOR = "predecessor"
    PLACE = "place"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEffect:
    """How much the order moves times, with its interval, as a fraction: 0.03 is 3 % slower."""

    kind: OrderEffectKind
    #: What slows or speeds up the start after it; None for the place.
    series: Hashable | None
    #: Of the last start in a block against the first; or of one after that series against others.
    effect: float
    low: float
    high: float
    #: The chance of so much where the order does not matter, by either of the tests.
    p_value: float
    #: Starts after that series; or blocks.
    count: int
    #: By how much the order moves a ratio at most: all of it where that is what ran before, and of the place
    #: what the order of starts leaves, which has every cell in every place about equally often.
    moved: float

    @property
    def is_alarming(self) -> bool:
        """Tell whether it is certain enough, and moves ratios by enough to matter."""
        return self.p_value < ALARM_LEVEL and abs(self.moved) > ALARM_EFFECT

    @property
    def is_over(self) -> bool:
        """Tell whether an alarm of it is to be cleared."""
        return self.p_value >= CLEAR_LEVEL or abs(self.moved) <= ALARM_EFFECT
