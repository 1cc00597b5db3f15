"""Readings of a harness adapter, their quality, and verdicts on candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from farm.core.errors import Blame
from farm.core.runs.derived.generation import Generation
from farm.core.runs.placement import Placement


class Outcome(StrEnum):
    """The outcome of a job or attempt."""

    SUCCEEDED = "succeeded"
    #: The variant's doing, or its harness's.
    FAILED = "failed"
    #: Data, not an error: this phone, harness and file do not go together.
    UNSUPPORTED = "unsupported"
    #: The device's, host's or farm's doing: says nothing of the variant.
    INCONCLUSIVE = "inconclusive"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Quality(StrEnum):
    """The quality of a measurement; only `valid` and `noisy` ones enter a speedup."""

    VALID = "valid"
    #: Samples scatter more than the limit: a mark. What is left out by the times themselves biases the rest.
    NOISY = "noisy"
    #: The phone throttled, or was hot before or after.
    THROTTLED = "throttled"
    #: The ceiling of a clock that the run used was lowered while it was measured.
    CAPPED = "capped"
    #: Memory of the process was swapped out while it was measured.
    SWAPPED = "swapped"
    #: The phone was not on mains all the time, and the matrix demands that.
    UNPLUGGED = "unplugged"
    #: A control set on the phone for the run did not stay so.
    UNCONTROLLED = "uncontrolled"
    #: Fewer samples than were asked for.
    SHORT = "incomplete"
    #: Something else than the requested backend did the work.
    FALLBACK = "fallback"
    #: Nothing shows which hardware did the work.
    UNPROVEN = "unproven"
    #: The clock's steps are too wide for the time that it took.
    COARSE = "coarse"
    #: What it generated cannot be what the model is to write: a blank text, or one token again and again.
    WRONG_OUTPUT = "wrong_output"
    #: The iterations cannot have taken so long: the whole process took less.
    IMPLAUSIBLE = "implausible"
    #: A newer version of its adapter reads no time off the same evidence.
    WITHDRAWN = "withdrawn"


#: How the energy of runs is measured: `farm.core.runs.derived.energy`.
EnergyMethod = Literal["none", "battery", "rails"]
#: Metrics of measured or imported energy, by method.
EXTERNAL_ENERGY = "external_energy"
ENERGY_METRICS = ("battery_energy", "rails_energy", EXTERNAL_ENERGY)
#: Metrics of sustained measurements, which the farm computes: `farm.core.runs.derived.sustained`.
SUSTAINED_METRICS = ("sustained_for", "sustained_peak", "sustained_decay", "first_ceiling")
#: Metrics of memory, which the farm computes: `farm.core.runs.derived.memory`.
PEAK_RSS, MEDIAN_RSS, PEAK_SWAP = "memory_peak_rss", "memory_median_rss", "memory_peak_swap"
MEMORY_METRICS = (PEAK_RSS, MEDIAN_RSS, PEAK_SWAP)
#: What the farm computes of runs of any harness.
COMPUTED_METRICS = (*MEMORY_METRICS, *ENERGY_METRICS)
#: Measurements of these qualities enter a speedup.
COUNTED = frozenset({Quality.VALID, Quality.NOISY})


class CellState(StrEnum):
    """What came of a cell so far."""

    #: It has a measurement that counts.
    VALID = "valid"
    #: It was measured, and no measurement counts: its quality says why.
    REFUSED = "refused"
    #: Its runs failed, by the variant's or the harness's doing.
    FAILED = "failed"
    #: Device, harness and file do not go together.
    UNSUPPORTED = "unsupported"
    #: Nothing came of it: it waits, runs for the first time, or was ended.
    NOT_RUN = "not run"


#: In those of these the device slowed itself down.
DISTURBED = frozenset({Quality.CAPPED, Quality.THROTTLED, Quality.SWAPPED})

#: The accelerator of a reading whose evidence does not say.
UNKNOWN_ACCELERATOR = "unknown"


class Better(StrEnum):
    """The direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A further number beside the time, in the unit of its source: 12 MB, 30 img/s, 5 mJ."""

    name: str
    value: float
    unit: str
    better: Better


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The reading of an adapter: samples, or the tool's own mean where it prints no samples; never both."""

    #: One value an iteration, in the order they ran; empty when the tool prints a summary only.
    samples_ns: tuple[int, ...] = ()
    mean_ns: float | None = None
    expected_samples: int
    #: The number behind the tool's own mean, which may exceed what was asked; None where it does not say.
    summed_samples: int | None = None
    #: The standard deviation of the iterations behind the tool's own mean: as printed, or the least one that
    #: the printed extremes and median allow; None where none of them is printed.
    deviation_ns: float | None = None
    #: The median of these iterations, where the tool prints it. The mean stays the value, because other
    #: versions of a tool print nothing else; the median judges it.
    median_ns: float | None = None
    #: The shortest and the longest of these iterations, where the tool prints them.
    extremes_ns: tuple[float, float] | None = None
    #: The backend that ran, as far as the adapter can tell, and the line or fact that shows it.
    actual_backend: str
    accelerator: str
    proof: str
    metrics: tuple[Metric, ...] = ()
    #: Resolution of the clock: the least difference between two times; 0 where that does not matter.
    clock_step_ns: int = 0
    #: The hardware that ran each part, as far as the evidence shows it.
    placement: Placement | None = None
    #: Of a language model: regime, digests and caches.
    generation: Generation | None = None
    #: Why its output cannot be right, whatever it took; empty where nothing shows that.
    wrong_output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
    """The reason why evidence yields no reading."""

    #: Stable, dotted: `run.crashed`, `run.timed_out`, `run.output_unreadable`.
    code: str
    outcome: Outcome
    blame: Blame
    message: str
    hint: str
    #: The line of output that shows it.
    line: str | None = None


class SampleKind(StrEnum):
    """The basis of a measurement's value; the two are never mixed in one comparison."""

    #: Median of single iterations.
    SAMPLES = "samples"
    #: The tool's own mean.
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSummary:
    """Summary of the samples of one measurement. With kind `summary` only the mean is known."""

    kind: SampleKind
    count: int
    value_ns: float
    mean_ns: float
    min_ns: int | None = None
    max_ns: int | None = None
    p90_ns: float | None = None
    #: How much single iterations scatter: interquartile range over the median of samples, standard deviation
    #: over a tool's mean.
    scatter: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityAssessment:
    """A quality with its reasons; no reasons exactly when valid."""

    quality: Quality
    reasons: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSummary:
    """Values over rounds; the interval is there from five rounds on."""

    #: Each one process start.
    rounds: int
    median: float
    low: float
    high: float
    #: The interval holds the median.
    ci_low: float | None
    ci_high: float | None


#: Largest distance from 1 at which a speedup counts as the same, as a fraction.
DEFAULT_MARGIN = 0.02
#: Fewer rounds give a ratio but no interval.
MIN_ROUNDS = 5


class Verdict(StrEnum):
    """The verdict on a candidate: where the interval lies against 1 and against the equivalence margin."""

    #: Above 1 by more than the margin.
    FASTER = "faster"
    #: Above 1: from less than the margin to more.
    FASTER_SIZE_OPEN = "faster_size_open"
    #: Above 1, by the margin at most.
    FASTER_WITHIN = "faster_within_margin"
    #: It holds 1 and lies within the margin.
    SAME = "same"
    SLOWER_WITHIN = "slower_within_margin"
    SLOWER_SIZE_OPEN = "slower_size_open"
    SLOWER = "slower"
    #: The interval spans 1 and reaches beyond the margin, or there is none.
    UNDECIDED = "undecided"
