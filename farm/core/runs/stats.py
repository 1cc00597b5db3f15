"""Statistics of the samples of one measurement, and the quantiles that intervals are made of."""

from collections.abc import Sequence

from farm.core.runs.measurement import Reading, SampleKind, SampleSummary

_SHARES = (0.25, 0.5, 0.75, 0.9)


def summarize_samples(reading: Reading) -> SampleSummary:
    """Summarize a reading. Quantiles are interpolated between order statistics (Hyndman and Fan's type 7).

    A tool's own mean yields kind `summary`, with a count of 0 where the tool does not say how many it is of.

    Raises:
        ValueError: the reading has neither samples nor a mean, or has both.
    """
    if bool(reading.samples_ns) == (reading.mean_ns is not None):
        raise ValueError("a reading has either samples or a mean")
    if reading.mean_ns is not None:
        mean_ns = reading.mean_ns
        count = reading.summed_samples or 0
        scatter = None if reading.deviation_ns is None else reading.deviation_ns / mean_ns
        low_ns, high_ns = (None, None) if reading.extremes_ns is None else map(round, reading.extremes_ns)
        return SampleSummary(
            kind=SampleKind.SUMMARY,
            count=count,
            value_ns=mean_ns,
            mean_ns=mean_ns,
            min_ns=low_ns,
            max_ns=high_ns,
            scatter=scatter,
        )
    return _summary_of_samples(reading.samples_ns)


def _summary_of_samples(samples_ns: tuple[int, ...]) -> SampleSummary:
    ordered = sorted(samples_ns)
    q25, median, q75, p90 = (quantile(ordered, share) for share in _SHARES)
    return SampleSummary(
        kind=SampleKind.SAMPLES,
        count=len(samples_ns),
        value_ns=median,
        mean_ns=sum(samples_ns) / len(samples_ns),
        min_ns=min(samples_ns),
        max_ns=max(samples_ns),
        p90_ns=p90,
        scatter=(q75 - q25) / median if median > 0 else None,
    )


def measured_s(reading: Reading) -> float | None:
    """Return the time of all iterations together; None where the tool does not say how many there were."""
    if reading.samples_ns:
        return sum(reading.samples_ns) / 1e9
    if reading.mean_ns is None or not reading.summed_samples:
        return None
    return reading.mean_ns * reading.summed_samples / 1e9


def quantile(ordered: Sequence[int], share: float) -> float:
    """Return the value that a share of samples stays below: Hyndman and Fan's type 7, exactly as numpy's.

    Without numpy, whose call takes longer than all else that settling a report computes.

    Args:
        ordered: the samples, the lowest first; at least one.
        share: from 0 to 1.
    """
    place = (len(ordered) - 1) * share
    below = min(int(place), len(ordered) - 1)
    lower, upper = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    part = place - below
    # From the nearer end, as numpy does: it rounds otherwise.
    if part < 0.5:
        return lower + (upper - lower) * part
    return upper - (upper - lower) * (1 - part)


def t_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t at `probability`; `degrees` of freedom, at least 1.

    `scipy.special` rather than `scipy.stats`, whose import alone takes most of a second.
    """
    # Not at the top: commands that list devices import this module, and must not wait for scipy.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def t_probability(value: float, degrees: float) -> float:
    """Return the probability that Student's t with so many degrees of freedom is at most `value`."""
    from scipy.special import stdtr

    return float(stdtr(degrees, value))
