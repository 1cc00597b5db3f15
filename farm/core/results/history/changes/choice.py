"""The choice among candidates for a change: which of them explains most."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from farm.core.results.history.changes.breaks import VersionBreak
from farm.core.results.history.changes.differences import Difference, pooled
from farm.core.results.history.changes.points import Cause
from farm.core.results.statistics.families import discoveries

#: The least effect: smaller estimates are no change.
LEAST_EFFECT = 0.015
#: The further series of a wider scope move by this share of the others.
_SHARE_OF_WIDER = 0.5
#: Of the planned tests of a session that stand, so many are expected to be chance.
_FALSE_DISCOVERIES = 0.01


#: After a change without a version, the same series or device drifts on for so many days without another.
_DRIFT_DAYS = 120
#: On its way, a drift may look like a step, but hardly like one of so many times what was told of it.
_STEP_ON_DRIFT = 2.0


class Moved(NamedTuple):
    """A change that was told, and that no version explains."""

    size: float
    day: int
    is_drift: bool

    def may_go_on(self, size: float, day: int, *, is_step: bool = False) -> bool:
        """Return whether a change on a day may be this one that goes on.

        Args:
            size: of the change.
            day: on which it begins.
            is_step: whether it explains the sessions better as a step than as a drift.
        """
        if is_step and abs(size) >= _STEP_ON_DRIFT * abs(self.size):
            return False
        return self.size * size > 0 and day - self.day < _DRIFT_DAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A change that may be told."""

    cause: Cause
    scope: Mapping[str, str]
    #: Rows of the series that changed, with the tick of the first session of the new level.
    tick_by_row: Mapping[int, int]
    day: int
    z: float
    #: Change of log time.
    size: float
    threshold: float
    #: In absolute time: the ratios stayed.
    is_absolute: bool = False
    break_: VersionBreak | None = None
    #: Of ratios: what each series shows.
    evidence: Mapping[int, Difference] = field(default_factory=dict)
    #: One over the variance of the mean of its series; 0 where that is not known.
    precision: float = 0.0
    #: Tested because a version changed, and not found by a scan.
    is_planned: bool = False
    #: A planned test of a part of what the version concerns.
    is_part: bool = False
    #: Part of a change that was told.
    is_known: bool = False
    #: Found by a scan over so many latest sessions.
    sessions: int = 0

    @property
    def score(self) -> float:
        """Return twice the log likelihood ratio, less what is asked of such a candidate."""
        return self.z**2 - self.threshold**2

    @property
    def p_value(self) -> float:
        """Return the chance of such a score without any change."""
        return math.erfc(abs(self.z) / math.sqrt(2))


class Significance(NamedTuple):
    """The largest p-values that stand among the planned tests of a session; -1 where none does."""

    of_whole: float
    of_part: float

    def admits(self, candidate: Candidate) -> bool:
        """Return whether a planned test stands."""
        return candidate.p_value <= (self.of_part if candidate.is_part else self.of_whole)


def significance(candidates: Iterable[Candidate]) -> Significance:
    """Return what stands beside all planned tests of a session.

    Tests of parts need a score that is far beyond what their number asks for. So they are no part of what the
    tests of whole scopes stand beside: a build that is tested in a dozen parts would hide its own change.
    """
    tests = list(candidates)
    return Significance(
        of_whole=_largest([test.p_value for test in tests if not test.is_part]),
        of_part=_largest([test.p_value for test in tests]),
    )


def _largest(p_values: Sequence[float]) -> float:
    if not p_values:
        return -1.0
    stands = discoveries(p_values, rate=_FALSE_DISCOVERIES)
    return max((p for p, does in zip(p_values, stands, strict=True) if does), default=-1.0)


def strongest(candidates: Sequence[Candidate], *, stands: Significance) -> Candidate | None:
    """Return the candidate that explains most, of those that reach their thresholds.

    Args:
        candidates: of planned tests and of scans.
        stands: which planned tests of the session do.
    """
    able = [
        c
        for c in candidates
        if abs(c.z) >= c.threshold and abs(c.size) >= LEAST_EFFECT and (not c.is_planned or stands.admits(c))
    ]
    if not able:
        return None
    best = max(able, key=lambda c: c.score)
    wider = [c for c in candidates if _includes(c, best)]
    return max(wider, key=lambda c: (len(c.tick_by_row), c.score), default=best)


def _includes(wider: Candidate, best: Candidate) -> bool:
    """Return whether the further series of a wider scope of the same break moved by at least half as much."""
    if wider.break_ is None or wider.break_ is not best.break_ or wider.is_absolute or best.is_absolute:
        return False
    if not wider.tick_by_row.keys() > best.tick_by_row.keys() or wider.size * best.size <= 0:
        return False
    narrow = best.evidence.keys() or best.tick_by_row.keys()
    own = [part for row, part in wider.evidence.items() if row in narrow]
    rest = [part for row, part in wider.evidence.items() if row not in narrow]
    if not own or not rest:
        return bool(own)
    # Clipped means of few sessions hardly tell a change of a precise series from none.
    moved, others = pooled(own).size, pooled(rest)
    says_nothing = others.precision * moved**2 <= 1.0
    return says_nothing or others.size / moved >= _SHARE_OF_WIDER
