"""Peak memory of a run: the high-water mark of its resident memory (VmHWM), from the trace of the run."""

from farm.core.runs.measurement import PEAK_RSS, Better, Metric, Reading
from farm.core.runs.stats import measured_s
from farm.core.runs.trace import RunTrace


def peak_rss(trace: RunTrace | None, reading: Reading) -> Metric | str | None:
    """Return the peak memory of the measured process and its children in bytes, or why it is not known.

    The kernel keeps the high-water mark itself, so a sample knows the peak of all the time before it. Only a
    sample of the measured part, and of the later half of the run, is behind loading: an earlier one is of a
    process that has only begun. Where the length of the measured part is not known, the half decides.

    Args:
        trace: None for a run that was not sampled, which has no peak and no reason.
        reading: its samples together are as long as the measured part, which ends with the process.
    """
    if trace is None or not trace.samples:
        return None
    if trace.ended_uptime_s is None:
        return "the end of the run is not in its trace"
    peaks = [
        (sample.uptime_s, sample.peak_rss_bytes)
        for sample in trace.samples
        if sample.peak_rss_bytes is not None
    ]
    if not peaks:
        return "the device hides it"
    ended_s, length_s = trace.ended_uptime_s, measured_s(reading)
    loaded_s = (trace.began_uptime_s + ended_s) / 2
    if length_s is not None:
        loaded_s = max(loaded_s, ended_s - length_s)
    if peaks[-1][0] < loaded_s:
        return "the measured part was too short for a sample"
    return Metric(
        name=PEAK_RSS, value=float(max(size for _, size in peaks)), unit="bytes", better=Better.LOWER
    )
