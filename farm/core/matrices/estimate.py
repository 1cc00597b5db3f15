"""Estimates of device time per cell, from the durations of similar runs."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from statistics import median

from farm.core.base.ids import Digest
from farm.core.base.setting_values import SettingValue
from farm.core.runs.derived.sustained import SUSTAINED_SETTING


class EstimateBasis(StrEnum):
    """The basis of an estimate; the first that exists is used."""

    #: Runs of the same series.
    SERIES = "series"
    #: Runs of that model with these settings on that device model.
    DEVICE_MODEL = "device_model"
    #: Runs of that harness; sustained ones of the same time, or else the others.
    HARNESS = "harness"
    #: Nothing like it has run here: the longest that a run may take, `timeout_s`.
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKind:
    """The properties of a run that its duration depends on."""

    series: Digest
    harness: str
    #: None where the harness runs no model.
    model: str | None
    device_model: str | None
    #: Those that are not the harness's defaults, in any order.
    settings: frozenset[tuple[str, SettingValue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimated device time of one run, from the claim to the settled report."""

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
        """Return the median of the most similar runs, or else the time-out."""
        for key in _keys(kind):
            if (seconds := self._median_by_key.get(key)) is not None:
                return Estimate(seconds=seconds, basis=key[0])
        return Estimate(seconds=timeout_s, basis=EstimateBasis.TIMEOUT)


def _keys(kind: RunKind) -> Sequence[tuple[EstimateBasis, Hashable]]:
    return (
        (EstimateBasis.SERIES, kind.series),
        (EstimateBasis.DEVICE_MODEL, (kind.harness, kind.model, kind.settings, kind.device_model)),
        (EstimateBasis.HARNESS, (kind.harness, dict(kind.settings).get(SUSTAINED_SETTING))),
    )


#: Ends of jobs that tell a phone's pace; older ones tell how it was.
PACE_WINDOW = 30


def pace_s(ends: Sequence[datetime]) -> float | None:
    """Return the seconds from one job's end to the next on a device; None before two have ended.

    The median: a phone that was away for an hour in between is no slower for it. Jobs that ended together
    were cancelled together.
    """
    last = sorted(set(ends))[-PACE_WINDOW:]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(last)]
    return median(gaps) if gaps else None


def remaining_s(left: int, pace: float, since_last_end_s: float) -> float:
    """Return the seconds left: the time since the last end belongs to the running job."""
    return max(0.0, left * pace - min(since_last_end_s, pace))
