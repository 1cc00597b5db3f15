"""What planned tests ask for: least scores, numbers of sessions, and how series of a scope move."""

from collections.abc import Callable, Collection, Mapping

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


def fits_as_well(z: float, best: float) -> bool:
    """Return whether a step explains what moved nearly as well as the best one, in its direction."""
    return z * best > 0 and not is_clearly_better(best, z)


def begins_elsewhere(
    score: Callable[[Mapping[int, int]], float], sessions: Mapping[int, Ints], tick_of: Mapping[int, int]
) -> bool:
    """Return whether a step some sessions earlier, or one later, two, and so on, explains clearly better.

    Args:
        score: that of a step at a first session of each series or device.
        sessions: of each, oldest first.
        tick_of: the first session of each with a new version.
    """
    here = score(tick_of)
    places = {key: int(np.searchsorted(sessions[key], tick)) for key, tick in tick_of.items()}
    most = max(len(sessions[key]) - place for key, place in places.items())
    return any(
        is_clearly_better(
            score(
                {
                    key: int(sessions[key][np.clip(place + offset, 1, len(sessions[key]) - 1)])
                    for key, place in places.items()
                }
            ),
            here,
        )
        for offset in (*range(-_MOST_EARLIER, 0), *range(1, most))
    )
