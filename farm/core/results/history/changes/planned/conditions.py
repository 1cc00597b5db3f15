"""What planned tests ask for: least scores, numbers of sessions, and how series of a scope move."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from farm.core.results.history.changes.noise import Ints

#: Least standard normal scores of planned tests. Several looks are taken, at 2 to 20 sessions.
PLANNED = 3.5
#: In absolute time, of several devices, which one room moves. A scan's step of a device needs it, too.
PLANNED_ABSOLUTE = 3.8
#: Of one series of many that a break concerns, or of a narrower scope: more of them can be found by chance.
PLANNED_NARROW = 4.2
#: Sessions after a break, in at least one series.
LEAST_AFTER = 2
#: Looks end with so many sessions after a break.
MOST_AFTER = 25
#: Of the series of a scope, so many move where everything moves together.
TOGETHER = 0.75
SHARE_OF_STEP = 0.4
#: A step at one session explains clearly better than one at another what moved, if twice its log likelihood
#: ratio is so much more: three standard deviations.
_CLEARLY_MORE = 9.0
#: A change may have begun so many sessions before a version, at most.
_MOST_EARLIER = 6


def are_most_fresh(afters: Collection[int]) -> bool:
    """Return whether half of what has a new version has it for few sessions enough that it is tested."""
    return bool(afters) and 2 * sum(after <= MOST_AFTER for after in afters) >= len(afters)


def is_clearly_better(z: float, than: float) -> bool:
    """Return whether a step explains what moved clearly better than another one, by their scores."""
    return z * than > 0 and z**2 > than**2 + _CLEARLY_MORE


def other_starts(ticks: Mapping[int, Ints], tick_of: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """Yield where else a change may begin: some sessions earlier, or one later, two, and so on.

    Args:
        ticks: sessions by series or device, oldest first.
        tick_of: the first session of a new version, by the same.
    """
    places = {key: int(np.searchsorted(ticks[key], tick)) for key, tick in tick_of.items()}
    most = max(len(ticks[key]) - place for key, place in places.items())
    for offset in (*range(-_MOST_EARLIER, 0), *range(1, most)):
        yield {
            key: int(ticks[key][np.clip(place + offset, 1, len(ticks[key]) - 1)])
            for key, place in places.items()
        }
