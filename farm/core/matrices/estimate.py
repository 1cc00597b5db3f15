"""How long cells will keep a phone busy, from how long runs like them did."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from statistics import median

from farm.core.base.ids import Digest
from farm.core.base.setting_values import SettingValue


class EstimateBasis(StrEnum):
    """What an estimate rests on; the first that there is."""

    SERIES = "runs of the same series"
    DEVICE_MODEL = "runs of that model with these settings on that device model"
    HARNESS = "runs of that harness"
    #: Nothing to go by: the longest that a run may take.
    TIMEOUT = "timeout_s: nothing like it has run here"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKind:
    """What a run was, or is to be, as far as its length can be told from others'."""

    series: Digest
    harness: str
    #: None where the harness runs no model.
    model: str | None
    device_model: str | None
    #: Those that are not the harness's defaults, in any order.
    settings: frozenset[tuple[str, SettingValue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """How long one run keeps its phone busy: from the claim to the settled report."""

    seconds: float
    basis: EstimateBasis


class RunHistory:
    """Medians over past runs, by what they have in common."""

    def __init__(self, runs: Iterable[tuple[RunKind, float]]) -> None:
        """Take runs with their seconds."""
        seconds: dict[tuple[EstimateBasis, Hashable], list[float]] = {}
        for kind, taken_s in runs:
            for key in _keys(kind):
                seconds.setdefault(key, []).append(taken_s)
        self._median_by_key: Mapping[tuple[EstimateBasis, Hashable], float] = {
            key: median(values) for key, values in seconds.items()
        }

    def estimate(self, kind: RunKind, *, timeout_s: float) -> Estimate:
        """The median of the runs that are most like it, or else its time-out."""
        for key in _keys(kind):
            if (seconds := self._median_by_key.get(key)) is not None:
                return Estimate(seconds=seconds, basis=key[0])
        return Estimate(seconds=timeout_s, basis=EstimateBasis.TIMEOUT)


def _keys(kind: RunKind) -> Sequence[tuple[EstimateBasis, Hashable]]:
    return (
        (EstimateBasis.SERIES, kind.series),
        (EstimateBasis.DEVICE_MODEL, (kind.harness, kind.model, kind.settings, kind.device_model)),
        (EstimateBasis.HARNESS, kind.harness),
    )


#: Ends of jobs that tell a phone's pace; older ones tell how it was.
PACE_WINDOW = 30


def pace_s(ends: Sequence[datetime]) -> float | None:
    """Seconds from one job's end to the next on a phone; None before there are two.

    The median: a phone that was away for an hour in between is no slower for it. Jobs that ended together
    were cancelled together.
    """
    last = sorted(set(ends))[-PACE_WINDOW:]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(last)]
    return median(gaps) if gaps else None


def remaining_s(left: int, pace: float, since_last_end_s: float) -> float:
    """Seconds to go: the time since the last end belongs to the job under way."""
    return max(0.0, left * pace - min(since_last_end_s, pace))
