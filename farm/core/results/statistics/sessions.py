"""How far sessions lie apart: what the interval of one session cannot know."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpread:
    """The medians of earlier matrices of the same cell, file and program on the same device."""

    matrices: int
    low_ns: float
    high_ns: float


def session_spread(sessions: Sequence[Sequence[float]]) -> SessionSpread | None:
    """Return the spread of the medians of sessions, each the values of its rounds; None without any."""
    medians = [median(values) for values in sessions if values]
    if not medians:
        return None
    return SessionSpread(matrices=len(medians), low_ns=min(medians), high_ns=max(medians))
