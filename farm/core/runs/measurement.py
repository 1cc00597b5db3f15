"""Readings of a harness adapter and their quality."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from farm.core.errors import Blame
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
    """The quality of a measurement; only `valid` ones enter a speedup."""

    VALID = "valid"
    #: Samples scatter more than the limit.
    NOISY = "noisy"
    #: The phone throttled, or was hot before or after.
    THROTTLED = "throttled"
    #: The phone was not on mains all the time, and the matrix demands that.
    UNPLUGGED = "unplugged"
    #: What was set on the phone for the run did not stay so.
    UNCONTROLLED = "uncontrolled"
    #: Fewer samples than were asked for.
    SHORT = "incomplete"
    #: Something else than the requested backend did the work.
    FALLBACK = "fallback"
    #: Nothing shows which hardware did the work.
    UNPROVEN = "unproven"
    #: The clock's steps are too wide for the time that it took.
    COARSE = "coarse"
    #: A newer version of its adapter reads no time off the same evidence.
    WITHDRAWN = "withdrawn"


#: The accelerator of a reading whose evidence does not say.
UNKNOWN_ACCELERATOR = "unknown"


class Better(StrEnum):
    """The direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A further figure that a harness printed, kept beside the time: memory, throughput, energy."""

    name: str
    value: float
    #: As its harness defines it: `MB`, `img/s`, `mJ`.
    unit: str
    better: Better


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The reading of an adapter: samples, or the tool's own mean where it prints no samples; never both."""

    #: One value an iteration, in the order they ran; empty when the tool prints a summary only.
    samples_ns: tuple[int, ...] = ()
    mean_ns: float | None = None
    #: How many iterations the plan asked for.
    expected_samples: int
    #: How many are behind the tool's own mean, which may be more than was asked; None where it does not say.
    summed_samples: int | None = None
    #: What ran, as far as the adapter can tell, and the line or fact that shows it.
    actual_backend: str
    accelerator: str
    proof: str
    metrics: tuple[Metric, ...] = ()
    #: How far apart two times are that the clock can tell from each other; 0 where that does not matter.
    clock_step_ns: int = 0
    #: Which hardware ran which part, as far as the evidence shows it.
    placement: Placement | None = None


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
    """Figures over the samples of one measurement. With kind `summary` only the mean is known."""

    kind: SampleKind
    count: int
    #: The measurement's value: the median, or the tool's mean.
    value_ns: float
    mean_ns: float
    min_ns: int | None = None
    max_ns: int | None = None
    p90_ns: float | None = None
    #: Interquartile range over the median: how much single iterations scatter.
    scatter: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityAssessment:
    """A quality with its reasons; no reasons exactly when valid."""

    quality: Quality
    reasons: Sequence[str] = ()
