"""Speedup of a candidate over its baseline on one device, with its interval."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from farm.core.results.pairing import (
    SUPERSEDED_BLOCK,
    Exclusion,
    RoundPair,
    Sides,
    exclusion_of,
    exclusion_sort_key,
    sides_of,
)
from farm.core.runs.measurement import DEFAULT_MARGIN, MIN_ROUNDS, CellSummary, SampleKind, Verdict
from farm.core.runs.stats import t_quantile

CONFIDENCE = 0.95
#: The chance to find an effect of the size of the minimum detectable one.
POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """The answer for one device. Above 1 means that the candidate is quicker.

    `ratio` is exactly `baseline_ns / candidate_ns`, both geometric means over the rounds that count; all
    three are None when no round does. The interval is there from five rounds on and contains the ratio.
    """

    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    verdict: Verdict
    #: The reason of the verdict, in words.
    reason: str
    #: Rounds that count.
    rounds: int
    excluded: tuple[Exclusion, ...]
    baseline_ns: float | None
    candidate_ns: float | None
    kind: SampleKind | None
    #: The smallest true difference that these rounds would probably have shown, as a fraction (0.03 is 3 %).
    detectable: float | None

    @property
    def difference_ns(self) -> float | None:
        """Return candidate minus baseline: negative when the candidate is quicker."""
        if self.baseline_ns is None or self.candidate_ns is None:
            return None
        return self.candidate_ns - self.baseline_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interval:
    """On the log scale, where swapping the sides only changes the sign."""

    low: float
    high: float
    detectable: float


def speedup(
    pairs: Iterable[RoundPair],
    *,
    excluded: Iterable[Exclusion] = (),
    margin: float = DEFAULT_MARGIN,
    confidence: float = CONFIDENCE,
) -> Speedup:
    """Compare over rounds. A round is one observation: iterations inside one process are not independent.

    The interval is Student's t over the rounds' log ratios. The equivalence margin is symmetric on that
    scale: 2 % means from 1/1.02 to 1.02.

    Args:
        pairs: at most one for each round, in any order; those that cannot count are excluded with the reason.
        excluded: exclusions already known, to be listed too.
        margin: how far from 1 is still the same, as a fraction.
        confidence: of the interval; a look at rounds that are not all there yet asks for more than the last.

    Raises:
        ValueError: a round is there twice.
    """
    usable, unusable = _split_by_kind(list(pairs))
    logs = [math.log(baseline.value_ns) - math.log(candidate.value_ns) for baseline, candidate in usable]
    interval = _interval(logs, confidence) if len(logs) >= MIN_ROUNDS else None
    left_out = tuple(sorted([*excluded, *unusable], key=exclusion_sort_key))
    verdict, reason = _verdict(interval, len(logs), margin)
    if interval is None:
        reason += _main_exclusion_text(left_out) if usable or left_out else ": neither side has a measurement"
    baseline_ns = _geometric_mean([baseline.value_ns for baseline, _ in usable])
    candidate_ns = _geometric_mean([candidate.value_ns for _, candidate in usable])
    ratio = baseline_ns / candidate_ns if baseline_ns and candidate_ns else None
    return Speedup(
        ratio=ratio,
        ci_low=min(_exp(interval.low), ratio) if interval and ratio else None,
        ci_high=max(_exp(interval.high), ratio) if interval and ratio else None,
        verdict=verdict,
        reason=reason,
        rounds=len(usable),
        excluded=left_out,
        baseline_ns=baseline_ns,
        candidate_ns=candidate_ns,
        kind=usable[0][0].kind if usable else None,
        detectable=_exp(interval.detectable) - 1 if interval else None,
    )


def _split_by_kind(pairs: Sequence[RoundPair]) -> tuple[list[Sides], list[Exclusion]]:
    """Split into sides of one kind, and the rest; the kind of most rounds counts, samples on a tie."""
    if len({pair.round for pair in pairs}) < len(pairs):
        raise ValueError("each round counts once")
    judged = [(pair, sides_of(pair)) for pair in pairs]
    counts = Counter(sides[0].kind for _, sides in judged if isinstance(sides, tuple))
    kind = max(SampleKind, key=lambda kind: counts[kind])
    usable: list[Sides] = []
    unusable: list[Exclusion] = []
    for pair, sides in judged:
        if isinstance(sides, str):
            unusable.append(exclusion_of(pair, sides))
        elif sides[0].kind is not kind:
            unusable.append(exclusion_of(pair, f"its values are of {sides[0].kind}, most others of {kind}"))
        else:
            usable.append(sides)
    return usable, unusable


def _interval(logs: Sequence[float], confidence: float) -> _Interval:
    """Return Student's t interval of the mean, and the minimum detectable effect at 80 % power.

    The latter is (t[(1 + confidence) / 2] + t[0.8]) x standard error: Bloom, "Minimum Detectable Effects",
    Evaluation Review 19(5), 1995. Sums are exactly rounded, so the order of the rounds cannot show.
    """
    count = len(logs)
    mean = math.fsum(logs) / count
    variance = math.fsum((log - mean) ** 2 for log in logs) / (count - 1)
    error = math.sqrt(variance / count)
    t = t_quantile((1 + confidence) / 2, count - 1)
    detectable = (t + t_quantile(POWER, count - 1)) * error
    return _Interval(low=mean - t * error, high=mean + t * error, detectable=detectable)


def _verdict(interval: _Interval | None, rounds: int, margin: float) -> tuple[Verdict, str]:
    if interval is None:
        usable = "1 usable round" if rounds == 1 else f"{rounds} usable rounds"
        return Verdict.UNDECIDED, f"{usable}, at least {MIN_ROUNDS} make an interval"
    limit = math.log1p(margin)
    if -limit <= interval.low and interval.high <= limit:
        return Verdict.SAME, f"the interval lies within {margin:.1%} of 1"
    if interval.low > 0:
        return Verdict.FASTER, "the whole interval is above 1"
    if interval.high < 0:
        return Verdict.SLOWER, "the whole interval is below 1"
    return Verdict.UNDECIDED, f"the interval spans 1 and reaches beyond {margin:.1%} of it"


def _main_exclusion_text(left_out: Iterable[Exclusion]) -> str:
    """Describe what cost most of the rounds; a block that ran again cost none."""
    reasons = Counter(exclusion.reason for exclusion in left_out if exclusion.reason != SUPERSEDED_BLOCK)
    return f": {reasons.most_common(1)[0][0]}" if reasons else ""


def _geometric_mean(values_ns: Sequence[float]) -> float | None:
    if not values_ns:
        return None
    return math.exp(math.fsum(map(math.log, values_ns)) / len(values_ns))


def _exp(log: float) -> float:
    """Return `math.exp`, without raising on intervals of absurd width."""
    return math.exp(min(log, 700.0))


def summarize_cell(values: Sequence[float]) -> CellSummary:
    """Summarize rounds.

    The interval is Student's t over the rounds' logarithms: that of their geometric mean, made wide enough to
    hold their median.

    Args:
        values: at least one; without an interval where one is not above zero.
    """
    middle = median(values)
    interval = _value_interval(values)
    return CellSummary(
        rounds=len(values),
        median=middle,
        low=min(values),
        high=max(values),
        ci_low=min(interval[0], middle) if interval else None,
        ci_high=max(interval[1], middle) if interval else None,
    )


def _value_interval(values: Sequence[float]) -> tuple[float, float] | None:
    count = len(values)
    if count < MIN_ROUNDS or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / count
    variance = math.fsum((log - mean) ** 2 for log in logs) / (count - 1)
    reach = t_quantile((1 + CONFIDENCE) / 2, count - 1) * math.sqrt(variance / count)
    # Bounded, so that values of absurd width do not overflow.
    return math.exp(max(mean - reach, -700.0)), math.exp(min(mean + reach, 700.0))
