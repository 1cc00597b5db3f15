"""Search for the version that changed a time: what comparisons showed in, the next comparison out.

A comparison measures one version beside both ends of the search, in the same blocks. It is like the end that
it is nearer to in that session: what all sessions of a day, or of a device, have in common cancels, and so
does a change of the ends that was overestimated when it was found. A version in the middle is undecided, one
that cannot run says nothing; both narrow the answer to a range, and blame no neighbour.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

#: Intervals of comparisons reach to each side by this share of the change of the ends: half of the change is
#: then about five standard errors of what decides.
_WIDTH_SHARE = 1 / 4
#: A version is undecided that is nearer to the middle of both ends than this share of its interval, or of
#: the change: sessions differ by more than their intervals know.
_MIDDLE_OF_WIDTH, _MIDDLE_OF_CHANGE = 0.5, 0.2
#: The undecided versions after which a search ends with a range: further ones would not say more.
_MOST_UNDECIDED = 3
#: The bounds of `until: {half_width: ...}`.
_LEAST_WIDTH, _MOST_WIDTH = 0.0001, 1.0


class VersionResult(StrEnum):
    """What a comparison showed of a version."""

    #: It is like the good end.
    GOOD = "good"
    #: It is like the bad end.
    BAD = "bad"
    #: Its interval does not say which end it is like, or the ends did not differ again.
    UNDECIDED = "undecided"
    #: It has no usable measurement where the ends have.
    NOT_RUN = "not_run"

    @property
    def is_known(self) -> bool:
        """Return whether it narrows the search from one side."""
        return self in (VersionResult.GOOD, VersionResult.BAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChange:
    """A version against the good end: the change of the logarithm of its time, + is slower."""

    value: float
    #: Of its interval, to each side.
    half_width: float

    @classmethod
    def of_speedup(cls, ratio: float | None, ci_low: float | None, ci_high: float | None) -> Self | None:
        """Return the change of a comparison; None without an interval."""
        if not ratio or not ci_low or not ci_high:
            return None
        return cls(value=-math.log(ratio), half_width=math.log(ci_high / ci_low) / 2)

    @property
    def least(self) -> float:
        """Return the least change within the interval; negative where that may be none."""
        return abs(self.value) - self.half_width

    @property
    def is_shown(self) -> bool:
        """Return whether the interval leaves out no change at all."""
        return self.least > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRange:
    """How far a search is: the change is after `last_good`, at `first_bad` at the latest."""

    last_good: int
    first_bad: int
    #: The version to compare next; None at the end.
    next: int | None

    @property
    def is_exact(self) -> bool:
        """Return whether one version is left."""
        return self.first_bad - self.last_good == 1


def judge_version(version: LogChange, bad: LogChange, *, change: float) -> VersionResult:
    """Return which end a version is like.

    Args:
        version: against the good end.
        bad: the bad end against the good one, in the same blocks.
        change: that of the bad end when the search began, whose direction counts.
    """
    if not bad.is_shown or (bad.value > 0) != (change > 0):
        return VersionResult.UNDECIDED
    beyond_middle = math.copysign(1.0, bad.value) * (version.value - bad.value / 2)
    middle = max(_MIDDLE_OF_WIDTH * version.half_width, _MIDDLE_OF_CHANGE * abs(bad.value))
    if abs(beyond_middle) < middle:
        return VersionResult.UNDECIDED
    return VersionResult.BAD if beyond_middle > 0 else VersionResult.GOOD


def sought_half_width(changes: Sequence[float]) -> float:
    """Return the fraction that intervals of a comparison are to reach to each side.

    Args:
        changes: of the bad end against the good one in all sessions so far, at least one.
    """
    width = math.expm1(abs(math.fsum(changes) / len(changes)) * _WIDTH_SHARE)
    return min(_MOST_WIDTH, max(_LEAST_WIDTH, width))


def narrow(versions: int, results: Mapping[int, VersionResult]) -> SearchRange:
    """Return how far a search is, and the version to compare next.

    Args:
        versions: how many there are, from the good end at 0 to the bad one.
        results: of the versions that were compared, by place.
    """
    bad = [place for place, result in results.items() if result is VersionResult.BAD]
    first_bad = min([versions - 1, *bad])
    good = [place for place, result in results.items() if result is VersionResult.GOOD and place < first_bad]
    last_good = max([0, *good])
    between = range(last_good + 1, first_bad)
    open_places = [place for place in between if place not in results]
    undecided = sum(result is VersionResult.UNDECIDED for result in results.values())
    if not open_places or undecided >= _MOST_UNDECIDED:
        return SearchRange(last_good=last_good, first_bad=first_bad, next=None)
    # The middle; if that says nothing, away from it: versions that say nothing often are neighbours.
    targets = [
        last_good + (first_bad - last_good) * _spread_share(number)
        for number in range(len(between) - len(open_places) + 1)
    ]
    nearest = (min(between, key=lambda place: (abs(place - target), place)) for target in targets)
    following = next((place for place in nearest if place in open_places), open_places[0])
    return SearchRange(last_good=last_good, first_bad=first_bad, next=following)


def _spread_share(number: int) -> float:
    """Return 1/2, 1/4, 3/4, 1/8, 5/8, ...: van der Corput's sequence from its second term."""
    share, step, rest = 0.0, 0.5, number + 1
    while rest:
        share += step * (rest & 1)
        rest, step = rest >> 1, step / 2
    return share


def most_comparisons(versions: int) -> int:
    """Return how many comparisons a search takes at most if each version can run and is decided."""
    return 1 + math.ceil(math.log2(versions - 1)) if versions > 2 else 1
