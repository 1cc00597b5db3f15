"""Work that comes again and again, and no more: a series that had results at a regular distance."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

#: So many results, each of another matrix, show a habit.
MIN_RESULTS = 5
#: No distance is longer than this many times the usual one; a break this long is an end.
_IRREGULAR, _OVERDUE = 2.0, 3.0
#: Matrices that follow each other closer than this come from a person at work, not from a timetable.
_SHORTEST = timedelta(minutes=30)


def find_overdue_interval(results_at: Sequence[datetime], *, now: datetime) -> timedelta | None:
    """Return the interval by which a series is overdue; None where it is not, or has no regular interval.

    `results_at` are the times of its last results, one for each matrix, in any order.
    """
    at = sorted(results_at)[-(MIN_RESULTS + 1) :]
    if len(at) < MIN_RESULTS:
        return None
    distances = [later - earlier for earlier, later in pairwise(at)]
    usual = timedelta(seconds=median(distance.total_seconds() for distance in distances))
    if usual < _SHORTEST or max(distances) > _IRREGULAR * usual:
        return None
    return usual if now - at[-1] > _OVERDUE * usual else None
