"""Sustained runs: one process that works back to back for a given time; latency over time, peak and decay.

The convention is that of UL's 3DMark stress tests, which loop a scene twenty times and give the frame rate
stability: lowest loop over best loop. Here the run's own time is cut into twenty windows. The best window is
the peak. The value is the steady time, over the last four windows; the decay compares it with the peak.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import median

from farm.core.base.units import elapsed_text
from farm.core.runs.measurement import SUSTAINED_METRICS, Better, Metric, Reading, SampleSummary
from farm.core.runs.stats import measured_s, quantile, summarize_samples
from farm.core.runs.trace_findings import CAPPED_CLOCK, Ceiling

#: The setting of sustained runs in the identity of their series: the seconds asked for.
SUSTAINED_SETTING = "run.sustained_s"
#: Windows of a run; fewer where its samples are few.
WINDOWS = 20
#: The least samples, about, of a window's median.
MIN_WINDOW_SAMPLES = 5
#: With fewer windows, the best of them and the end of the run are too close to be compared.
MIN_WINDOWS = 5
#: The end of the run, as a share of its time, whose median is the steady time.
STEADY_SHARE = 0.2
#: A run that worked for less than this share of what was asked for says nothing of that time.
MIN_WORKED_SHARE = 0.9
#: Iterations whose output, a line of 100 bytes each, is within `SUSTAINED_OUTPUT_BYTES`.
MAX_ITERATIONS = 250_000
#: Instead of the usual limit: a line for each iteration, over many minutes.
SUSTAINED_OUTPUT_BYTES = 25_000_000
#: Where the iterations are counted, and not their time: a phone may become slower by this factor while it
#: works, before the time limit ends the run.
SLOWEST_FACTOR = 3.0
WORKED, PEAK, DECAY, FIRST_CEILING = SUSTAINED_METRICS


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyWindow:
    """The iterations that began in one window of a run; times from the first iteration's start."""

    start_s: float
    end_s: float
    count: int
    #: None where one iteration filled more than the whole window, and none began in it.
    median_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyProfile:
    """Latency over the time of a run."""

    windows: tuple[LatencyWindow, ...]
    worked_s: float
    #: Median of the iterations that began in the last fifth of the time.
    steady_ns: float
    #: Median of the best window; None where there are too few samples to tell it from the steady time.
    peak_ns: float | None

    @property
    def decay(self) -> float | None:
        """Return by which fraction the steady time is longer than the peak's; None without a peak."""
        return None if self.peak_ns is None else self.steady_ns / self.peak_ns - 1.0


def latency_profile(samples_ns: Sequence[int]) -> LatencyProfile:
    """Return the latency over time; the time of an iteration is the running sum of those before it.

    What passes between two iterations is not in the samples: on this axis they follow each other at once.

    Raises:
        ValueError: there is no sample, or all of them together take no time.
    """
    total_ns = sum(samples_ns)
    if total_ns <= 0:
        raise ValueError("a profile needs samples that take time")
    starts_ns = [0, *accumulate(samples_ns[:-1])]
    number = min(WINDOWS, max(1, len(samples_ns) // MIN_WINDOW_SAMPLES))
    samples_by_window: list[list[int]] = [[] for _ in range(number)]
    for start_ns, sample_ns in zip(starts_ns, samples_ns, strict=True):
        samples_by_window[min(start_ns * number // total_ns, number - 1)].append(sample_ns)
    windows = tuple(
        LatencyWindow(
            start_s=total_ns * place / number / 1e9,
            end_s=total_ns * (place + 1) / number / 1e9,
            count=len(own),
            median_ns=median(own) if own else None,
        )
        for place, own in enumerate(samples_by_window)
    )
    steady_ns = median(_steady_samples(starts_ns, samples_ns, total_ns))
    medians = [window.median_ns for window in windows if window.median_ns is not None]
    peak_ns = min(*medians, steady_ns) if number >= MIN_WINDOWS else None
    return LatencyProfile(
        windows=windows, worked_s=total_ns / 1e9, steady_ns=float(steady_ns), peak_ns=peak_ns
    )


def _steady_samples(starts_ns: Sequence[int], samples_ns: Sequence[int], total_ns: int) -> list[int]:
    """Return the samples that began in the last part; the last one where it began before that."""
    begins_ns = (1.0 - STEADY_SHARE) * total_ns
    late = [sample for start, sample in zip(starts_ns, samples_ns, strict=True) if start >= begins_ns]
    return late or [samples_ns[-1]]


def summarize_sustained(reading: Reading) -> SampleSummary:
    """Summarize a sustained reading: the value and its scatter are those of the steady part.

    Mean and extremes are of the whole run. A tool that prints no samples has its mean for a value: that of
    the whole run, decay included.

    Raises:
        ValueError: like `summarize_samples`.
    """
    summary = summarize_samples(reading)
    if not reading.samples_ns or sum(reading.samples_ns) <= 0:
        return summary
    starts_ns = [0, *accumulate(reading.samples_ns[:-1])]
    steady = sorted(_steady_samples(starts_ns, reading.samples_ns, sum(reading.samples_ns)))
    value_ns = float(median(steady))
    spread_ns = quantile(steady, 0.75) - quantile(steady, 0.25)
    return replace(summary, value_ns=value_ns, scatter=spread_ns / value_ns if value_ns > 0 else None)


def shortfall(reading: Reading, sustained_s: float) -> str | None:
    """Return how far a run fell short of the time it was to work; None where it did not."""
    worked = measured_s(reading)
    if worked is None or worked >= MIN_WORKED_SHARE * sustained_s:
        return None
    return f"it worked for {worked:.1f} s, {elapsed_text(sustained_s)} were asked for"


def sustained_metrics(reading: Reading, *, first_ceiling_s: float | None) -> Iterator[Metric]:
    """Yield the metrics of a sustained run; what its tool or its phone does not show is left out.

    Args:
        reading: of the whole run.
        first_ceiling_s: when a clock was first kept below its maximum, from the start of the run.
    """
    if (worked := measured_s(reading)) is not None:
        yield Metric(name=WORKED, value=worked, unit="s", better=Better.HIGHER)
    if reading.samples_ns and sum(reading.samples_ns) > 0:
        profile = latency_profile(reading.samples_ns)
        if profile.peak_ns is not None and profile.decay is not None:
            yield Metric(name=PEAK, value=profile.peak_ns / 1e6, unit="ms", better=Better.LOWER)
            yield Metric(name=DECAY, value=profile.decay * 100.0, unit="%", better=Better.LOWER)
    if first_ceiling_s is not None:
        yield Metric(name=FIRST_CEILING, value=first_ceiling_s, unit="s", better=Better.HIGHER)


def is_sustained(metrics: Iterable[Metric]) -> bool:
    """Tell by its metrics whether a measurement is of a sustained run: its value is the steady time then."""
    return any(metric.name == WORKED for metric in metrics)


def first_ceiling_s(ceilings: Sequence[Ceiling] | None) -> float | None:
    """Return when a clock was first kept clearly below its maximum, in seconds from the start of the process.

    None where the run was not sampled, the phone hides its ceilings, or none was that low.
    """
    low = [
        ceiling.first_s
        for ceiling in ceilings or ()
        if ceiling.lowest_hz < CAPPED_CLOCK * ceiling.hardware_hz
    ]
    return min(low, default=None)
