"""Expected duration of reference runs per kind of device, learned from history, in logarithms."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean, median

from farm.core.runs.stats import t_quantile

#: With fewer runs there is no range; of the only device of its kind, whose runs may all be from one bad day,
#: it takes more.
MIN_RUNS, MIN_RUNS_ALONE = 8, 16
#: A device that is checked more often than others does not weigh more.
MAX_RUNS_PER_DEVICE, MAX_RUNS_ALONE = 8, 24
#: The least devices of a kind that has changed if most of them are out of range.
MIN_DEVICES_FOR_SHIFT = 3
#: No range is narrower than this factor to either side, however alike its runs are.
MIN_WIDTH_FACTOR = 1.15
#: None is wider, however few its runs are.
MAX_WIDTH_FACTOR = 100.0
#: The share of runs of an unchanged device that a range is to hold.
RANGE_SHARE = 0.999

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

    The center is the median of all. The range is the prediction interval for one further run (Hahn and
    Meeker, Statistical Intervals, section 4.7) by Student's t: the fewer runs, and the more they scatter, the
    wider it is. The scatter is that of each device's runs around their own mean, so that two devices that
    differ do not hide each other; no run is left out of it, since the rare slow ones of a busy machine will
    come again. A median varies more than a mean, by pi / 2.

    Runs out of range are left out, or a device that stays slow would become the norm after some checks;
    unless most of several devices are out of range.
    """
    training = sorted(_training_runs(runs), key=_newest_first_key, reverse=True)
    is_alone = len({run.device for run in training}) == 1
    logs_by_device: defaultdict[Hashable, list[float]] = defaultdict(list)
    for run in training:
        if len(own := logs_by_device[run.device]) < (MAX_RUNS_ALONE if is_alone else MAX_RUNS_PER_DEVICE):
            own.append(math.log(run.value_ns))
    logs = [value for own in logs_by_device.values() for value in own]
    degrees = len(logs) - len(logs_by_device)
    if len(logs) < (MIN_RUNS_ALONE if is_alone else MIN_RUNS) or degrees == 0:
        return None
    center = median(logs)
    squares = sum((value - fmean(own)) ** 2 for own in logs_by_device.values() for value in own)
    error = math.sqrt(squares / degrees * (1 + math.pi / 2 / len(logs)))
    half = max(math.log(MIN_WIDTH_FACTOR), t_quantile((1 + RANGE_SHARE) / 2, degrees) * error)
    half = min(half, math.log(MAX_WIDTH_FACTOR))
    return ReferenceRange(
        center_ns=math.exp(center),
        lower_ns=math.exp(center - half),
        upper_ns=math.exp(center + half),
        runs=len(logs),
        devices=len(logs_by_device),
    )


def measure_drift(runs: Sequence[ReferenceSample], *, now: datetime) -> Drift | None:
    """Compare a device's newest runs with those from before a week ago; None where either are too few.

    `runs` are this device's own, the newest among them, which is being assessed. What was out of range before
    a run that was not is over.
    """
    newest_first = sorted(runs, key=_newest_first_key, reverse=True)
    since = now - RECENT_WITHIN
    passed_at = max([since, *(run.at for run in newest_first[1:] if not run.was_out_of_range)])
    recent = [
        run.value_ns for run in newest_first if run.at >= (passed_at if run.was_out_of_range else since)
    ][:RECENT_RUNS]
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
