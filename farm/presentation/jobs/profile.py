"""Latency over the time of a sustained run, as text."""

from collections.abc import Iterator

from farm.core.base.units import duration_text, elapsed_text
from farm.core.runs.derived.sustained import LatencyProfile
from farm.presentation.jobs.bars import UNKNOWN_BAR, bar
from farm.presentation.text import Field


def profile_fields(profile: LatencyProfile) -> Iterator[Field]:
    """Yield peak, steady time and decay, and a bar for each window of the time: the higher, the slower."""
    if profile.peak_ns is None or profile.decay is None:
        yield "decay", "unknown: the run has too few samples to tell its peak from its steady time"
    else:
        peak, steady = duration_text(profile.peak_ns), duration_text(profile.steady_ns)
        yield "decay", f"{profile.decay:.1%}: steady {steady}, {peak} in the best window"
    medians = [window.median_ns for window in profile.windows if window.median_ns is not None]
    low, high = min(medians), max(medians)
    bars = "".join(
        UNKNOWN_BAR if window.median_ns is None else bar(window.median_ns, low, high)
        for window in profile.windows
    )
    span_s = profile.worked_s / len(profile.windows)
    span = elapsed_text(span_s) if span_s >= 10 else f"{span_s:.2g} s"
    yield "latency", f"{bars} {duration_text(low)} to {duration_text(high)}, medians of {span} each"
