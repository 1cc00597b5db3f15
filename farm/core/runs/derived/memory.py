"""Memory of a run, from its trace: the peak and the median of what is resident, and what is swapped out."""

from collections.abc import Sequence
from statistics import median

from farm.core.runs.measurement import MEDIAN_RSS, PEAK_RSS, PEAK_SWAP, Better, Metric, Reading
from farm.core.runs.stats import measured_s
from farm.core.runs.trace import RunTrace, TraceSample


def memory_metrics(trace: RunTrace | None, reading: Reading) -> tuple[Metric, ...] | str | None:
    """Return the memory of the measured process and its children in bytes, or why it is not known.

    The peak of the resident memory (VmHWM) is the run's, with loading: the kernel keeps the high-water mark
    itself, so a sample knows the peak of all the time before it. The median of the resident memory (VmRSS)
    and the most that was swapped out (VmSwap) are of the measured part only.

    Only a sample of the measured part, and of the later half of the run, is behind loading: an earlier one is
    of a process that has only begun. Where the length of the measured part is not known, the half decides.

    Args:
        trace: None for a run that was not sampled, which has no memory and no reason.
        reading: its samples together are as long as the measured part, which ends with the process.
    """
    if trace is None or not trace.samples:
        return None
    if trace.ended_uptime_s is None:
        return "the end of the run is not in its trace"
    peaks = [sample for sample in trace.samples if sample.peak_rss_bytes is not None]
    if not peaks:
        return "the device hides it"
    loaded_s = _loaded_s(trace, trace.ended_uptime_s, reading)
    if peaks[-1].uptime_s < loaded_s:
        return "the measured part was too short for a sample"
    measured = [sample for sample in trace.samples if sample.uptime_s >= loaded_s]
    return tuple(
        Metric(name=name, value=float(size), unit="bytes", better=Better.LOWER)
        for name, size in (
            (PEAK_RSS, _most([sample.peak_rss_bytes for sample in peaks])),
            (MEDIAN_RSS, _median_rss(measured)),
            (PEAK_SWAP, _most([sample.swap_bytes for sample in measured])),
        )
        if size is not None
    )


def _loaded_s(trace: RunTrace, ended_s: float, reading: Reading) -> float:
    """Return the uptime from which a sample is certainly behind loading."""
    half_s, length_s = (trace.began_uptime_s + ended_s) / 2, measured_s(reading)
    return half_s if length_s is None else max(half_s, ended_s - length_s)


def _most(sizes: Sequence[int | None]) -> int | None:
    return max((size for size in sizes if size is not None), default=None)


def _median_rss(samples: Sequence[TraceSample]) -> float | None:
    known = [sample.rss_bytes for sample in samples if sample.rss_bytes is not None]
    return median(known) if known else None
