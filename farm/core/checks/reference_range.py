"""Expected duration of reference runs per kind of device, learned from history; robust, in logarithms."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

#: Fewer runs than this teach nothing.
MIN_RUNS = 8
#: A phone that is checked more often than others does not teach more than they do.
MAX_RUNS_PER_DEVICE = 8
#: Where most of so many phones or more are out of their band, it is their kind that has changed.
MIN_DEVICES_FOR_SHIFT = 3
#: No band is narrower than this factor to either side, however alike its runs are.
MIN_WIDTH_FACTOR = 1.15
#: Half the width of a band, in robust standard deviations of runs from their own phone's median.
WIDTH_IN_SD = 4.0
#: A median absolute deviation times this is the standard deviation, where deviations are normal.
_MAD_TO_SD = 1.4826

#: A phone's drift: its newest runs against those from before a week ago.
DRIFT_AFTER = timedelta(days=7)
RECENT_WITHIN = timedelta(days=3)
RECENT_RUNS, PAST_RUNS = 3, 5
#: Slower than this factor against itself is a drift.
DRIFT_FACTOR = 1.10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSample:
    """One fit golden run of a phone of the kind; `phone` is anything that tells phones apart."""

    phone: Hashable
    value_ns: float
    at: datetime
    #: It was slower than its band, or than its phone before, when it was judged.
    was_out_of_range: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRange:
    """The expected duration of a reference run, from `lower_ns` to `upper_ns`, both included."""

    center_ns: float
    lower_ns: float
    upper_ns: float
    #: How many runs it is learned from, of how many phones.
    runs: int
    phones: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A device's newest reference runs against its own earlier ones: medians and numbers of runs."""

    recent_ns: float
    recent_runs: int
    past_ns: float
    past_runs: int

    @property
    def factor(self) -> float:
        """Return the ratio of new to old; above 1 is slower."""
        return self.recent_ns / self.past_ns


def learn_reference_range(runs: Sequence[ReferenceSample]) -> ReferenceRange | None:
    """Learn a range; None from too few runs. The order of runs of different devices does not matter.

    The center is the median of all; the width is that of each phone's runs around the phone's own median, so
    that two phones that differ do not hide each other. What was out of the band teaches nothing, or a phone
    that is slow for good would be as usual after some checks; unless most of several phones are.
    """
    logs_by_phone: defaultdict[Hashable, list[float]] = defaultdict(list)
    for run in sorted(_training_runs(runs), key=_newest_first_key, reverse=True):
        if len(own := logs_by_phone[run.phone]) < MAX_RUNS_PER_DEVICE:
            own.append(math.log(run.value_ns))
    logs = [value for own in logs_by_phone.values() for value in own]
    if len(logs) < MIN_RUNS:
        return None
    center = median(logs)
    off = [abs(value - median(own)) for own in logs_by_phone.values() for value in own]
    half = max(math.log(MIN_WIDTH_FACTOR), WIDTH_IN_SD * _MAD_TO_SD * median(off))
    return ReferenceRange(
        center_ns=math.exp(center),
        lower_ns=math.exp(center - half),
        upper_ns=math.exp(center + half),
        runs=len(logs),
        phones=len(logs_by_phone),
    )


def measure_drift(runs: Sequence[ReferenceSample], *, now: datetime) -> Drift | None:
    """Compare a phone's newest runs with those from before a week ago; None where either are too few.

    `runs` are the one phone's own, the newest among them.
    """
    newest_first = sorted(runs, key=_newest_first_key, reverse=True)
    recent = [run.value_ns for run in newest_first if run.at >= now - RECENT_WITHIN][:RECENT_RUNS]
    past = [run.value_ns for run in newest_first if run.at <= now - DRIFT_AFTER and not run.was_out_of_range]
    if len(recent) < RECENT_RUNS or len(past) < PAST_RUNS:
        return None
    return Drift(
        recent_ns=_log_median(recent), recent_runs=len(recent), past_ns=_log_median(past), past_runs=len(past)
    )


def _training_runs(runs: Sequence[ReferenceSample]) -> list[ReferenceSample]:
    newest = {run.phone: run for run in sorted(runs, key=_newest_first_key)}
    out = sum(run.was_out_of_range for run in newest.values())
    has_changed = len(newest) >= MIN_DEVICES_FOR_SHIFT and 2 * out > len(newest)
    return [run for run in runs if has_changed or not run.was_out_of_range]


def _newest_first_key(run: ReferenceSample) -> tuple[datetime, float]:
    return run.at, run.value_ns


def _log_median(values: Sequence[float]) -> float:
    return math.exp(median(map(math.log, values)))
