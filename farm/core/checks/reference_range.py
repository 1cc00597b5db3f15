"""Expected duration of reference runs per kind of device, learned from history; robust, in logarithms."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

#: With fewer runs there is no range.
MIN_RUNS = 8
#: A device that is checked more often than others does not weigh more.
MAX_RUNS_PER_DEVICE = 8
#: Where most of so many devices or more are out of range, their kind has changed.
MIN_DEVICES_FOR_SHIFT = 3
#: No range is narrower than this factor to either side, however alike its runs are.
MIN_WIDTH_FACTOR = 1.15
#: Half the width of a range, in robust standard deviations of runs from their own device's median.
WIDTH_IN_SD = 4.0
#: A median absolute deviation times this is the standard deviation, where deviations are normal.
_MAD_TO_SD = 1.4826

#: Drift of a device: its newest runs against those from before a week ago.
DRIFT_AFTER = timedelta(days=7)
RECENT_WITHIN = timedelta(days=3)
RECENT_RUNS, PAST_RUNS = 3, 5
#: Slower than this factor against itself is a drift.
DRIFT_FACTOR = 1.10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSample:
    """A valid reference run of a device of the kind; `device` is any key that identifies the device."""

    device: Hashable
    value_ns: float
    at: datetime
    #: It was slower than its range, or than its device before, when it was assessed.
    was_out_of_range: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRange:
    """The expected duration of a reference run, from `lower_ns` to `upper_ns`, both included."""

    center_ns: float
    lower_ns: float
    upper_ns: float
    #: The number of runs it is learned from, and of their devices.
    runs: int
    devices: int


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

    The center is the median of all; the width is that of each device's runs around its own median, so
    that two devices that differ do not hide each other. Runs out of range are left out, or a device
    that stays slow would become the norm after some checks; unless most of several devices are out of range.
    """
    logs_by_device: defaultdict[Hashable, list[float]] = defaultdict(list)
    for run in sorted(_training_runs(runs), key=_newest_first_key, reverse=True):
        if len(own := logs_by_device[run.device]) < MAX_RUNS_PER_DEVICE:
            own.append(math.log(run.value_ns))
    logs = [value for own in logs_by_device.values() for value in own]
    if len(logs) < MIN_RUNS:
        return None
    center = median(logs)
    off = [abs(value - median(own)) for own in logs_by_device.values() for value in own]
    half = max(math.log(MIN_WIDTH_FACTOR), WIDTH_IN_SD * _MAD_TO_SD * median(off))
    return ReferenceRange(
        center_ns=math.exp(center),
        lower_ns=math.exp(center - half),
        upper_ns=math.exp(center + half),
        runs=len(logs),
        devices=len(logs_by_device),
    )


def measure_drift(runs: Sequence[ReferenceSample], *, now: datetime) -> Drift | None:
    """Compare a device's newest runs with those from before a week ago; None where either are too few.

    `runs` are this device's own, the newest among them.
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
    newest = {run.device: run for run in sorted(runs, key=_newest_first_key)}
    out = sum(run.was_out_of_range for run in newest.values())
    has_changed = len(newest) >= MIN_DEVICES_FOR_SHIFT and 2 * out > len(newest)
    return [run for run in runs if has_changed or not run.was_out_of_range]


def _newest_first_key(run: ReferenceSample) -> tuple[datetime, float]:
    return run.at, run.value_ns


def _log_median(values: Sequence[float]) -> float:
    return math.exp(median(map(math.log, values)))
