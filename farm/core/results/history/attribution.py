"""Which cause is recorded of a change that detection found: `unknown` where nothing common explains it."""

from collections.abc import Sequence
from statistics import median

from farm.core.results.history.change_evidence import SeriesLevels
from farm.core.results.history.changes.points import Cause, Change
from farm.core.results.history.recorded_change import ChangeCause, ChangedPart, ChangedVersion

#: A level that lasts for so many days at most passes.
_PASSES_WITHIN_DAYS = 30
#: So many sessions in a row at the level before say so, behind so many at the new one.
_SESSIONS_BACK, _SESSIONS_AWAY = 5, 3
#: A change takes another one back if it is as large up to this factor.
_AS_LARGE = 2.0


def recorded_cause(change: Change, versions: Sequence[ChangedVersion]) -> ChangeCause:
    """Return the cause of a change with these versions.

    Where nothing but the control level is another one, it is the method. A device is the cause of what
    several of its series show. What one shows, while its siblings stayed, is unknown, and so is a file that
    has no digest.
    """
    if not _is_without_version(change):
        return ChangeCause(change.cause)
    if [version.part for version in versions] == [ChangedPart.CONTROLS]:
        return ChangeCause.METHOD
    return _cause_without_version(change)


def possible_causes(change: Change) -> frozenset[ChangeCause]:
    """Return the causes that a change is recorded with, whatever its versions."""
    if not _is_without_version(change):
        return frozenset({ChangeCause(change.cause)})
    return frozenset({_cause_without_version(change), ChangeCause.METHOD})


def _is_without_version(change: Change) -> bool:
    return change.version is None and change.cause in (Cause.DEVICE, Cause.DRIFT, Cause.FILE)


def _cause_without_version(change: Change) -> ChangeCause:
    is_explained = change.cause is Cause.DRIFT or (change.cause is Cause.DEVICE and change.series is None)
    return ChangeCause(change.cause) if is_explained else ChangeCause.UNKNOWN


def may_pass(change: Change) -> bool:
    """Return whether a change is a step of one series that no version explains."""
    return change.series is not None and ChangeCause.UNKNOWN in possible_causes(change)


def went_back(levels: SeriesLevels, delta: float) -> bool:
    """Return whether sessions since are nearer to the level before a change than to the new one.

    They are five in a row, the first of them within 30 days after the change, behind three at the new level,
    and most of those that follow. Detection tells no return of a level that it has seen a few sessions of.
    """
    old = levels.values_before()
    if not old:
        return False
    limit = median(old) + delta / 2
    is_back = [(value - limit) * delta < 0 for value in levels.values_since()]
    days = [point.day - levels.after[0].day for point in levels.after]
    return any(
        all(is_back[start : start + _SESSIONS_BACK])
        and is_back[:start].count(False) >= _SESSIONS_AWAY
        and 2 * sum(is_back[start:]) > len(is_back) - start
        for start in range(len(is_back) - _SESSIONS_BACK + 1)
        if days[start] <= _PASSES_WITHIN_DAYS
    )


def passing_changes(changes: Sequence[Change]) -> frozenset[int]:
    """Return the places of changes that soon went back, and of those by which they did.

    They are steps of one series without a version, which the next change of that series takes back.

    Args:
        changes: in the order in which they were told.
    """
    last_by_series: dict[str, int] = {}
    found: set[int] = set()
    for place, change in enumerate(changes):
        before = None if change.series is None else last_by_series.get(change.series)
        for name in change.evidence:
            last_by_series.pop(name, None)
        if change.series is None or not may_pass(change):
            continue
        if before is not None and _takes_back(change, changes[before]):
            found |= {before, place}
        else:
            last_by_series[change.series] = place
    return frozenset(found)


def _takes_back(change: Change, before: Change) -> bool:
    share = -change.delta / before.delta
    return 1 / _AS_LARGE <= share <= _AS_LARGE and change.day - before.day <= _PASSES_WITHIN_DAYS
