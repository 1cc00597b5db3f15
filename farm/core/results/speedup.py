"""Speedup of a candidate over its baseline on one device, with its interval."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from farm.core.results.pairing import (
    SUPERSEDED_BLOCK,
    Exclusion,
    RoundPair,
    Side,
    Sides,
    block_key,
    exclusion_of,
)
from farm.core.results.statistics.interval import (
    CONFIDENCE,
    LogInterval,
    bounded_exp,
    log_interval,
    mean_and_variance,
    step_variance,
)
from farm.core.results.statistics.past_variance import PastVariance, VariancePrior
from farm.core.results.statistics.verdict import is_not_slower, verdict_on
from farm.core.runs.measurement import DEFAULT_MARGIN, MIN_ROUNDS, SampleKind, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionCount:
    """The number of blocks that do not count for one reason."""

    side: Side
    reason: str
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """The answer for one device. Above 1 means that the candidate is faster.

    `ratio` is exactly `baseline_ns / candidate_ns`, both geometric means over the rounds that count; all
    three are None when no round does. The interval is there from `MIN_ROUNDS` rounds on, and contains the
    ratio.
    """

    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    verdict: Verdict
    #: The reason of the verdict, in words.
    reason: str
    #: Rounds and pairs that count. They differ only for an A/A duplicate, which has a pair in each block of
    #: its baseline.
    rounds: int
    pairs: int
    excluded: tuple[Exclusion, ...]
    baseline_ns: float | None
    candidate_ns: float | None
    kind: SampleKind | None
    #: The minimum detectable effect at 80 % power, as a fraction (0.03 is 3 %): by the variance of the pair
    #: in the past where it is known, and never less than the margin.
    detectable: float | None
    #: The chance of a ratio at least so far from 1 where there is no difference.
    p_value: float | None
    #: Whether the interval rules out that the candidate is slower by more than the margin.
    not_slower: bool | None
    #: The ratio over all pairs whose sides both timed the requested work, excluded pairs too.
    ratio_of_all: float | None
    #: Earlier matrices whose variance moderates this one's.
    moderated_by: int
    #: The standard error of the logarithm of the ratio, and its degrees of freedom; None without an interval.
    log_error: float | None = None
    degrees: float | None = None

    @property
    def difference_ns(self) -> float | None:
        """Return candidate minus baseline: negative when the candidate is faster."""
        if self.baseline_ns is None or self.candidate_ns is None:
            return None
        return self.candidate_ns - self.baseline_ns

    @property
    def exclusion_counts(self) -> tuple[ExclusionCount, ...]:
        """Return how many blocks are excluded, by side and reason, the most frequent first."""
        counts = Counter((exclusion.side, exclusion.reason) for exclusion in self.excluded)
        return tuple(
            ExclusionCount(side=side, reason=reason, blocks=blocks)
            for (side, reason), blocks in counts.most_common()
        )

    @property
    def selection_matters(self) -> bool:
        """Tell whether excluded pairs would change the ratio by more than half of the interval's width."""
        if not (self.ratio and self.ratio_of_all and self.ci_low and self.ci_high):
            return False
        return abs(math.log(self.ratio_of_all / self.ratio)) > math.log(self.ci_high / self.ci_low) / 2


@dataclass(frozen=True, kw_only=True)
class PairedMeans:
    """What a comparison says without its interval: the pairs that count, and the times over them.

    A listing asks of most comparisons which pairs count, and of few the times; each is computed once.
    """

    #: Baseline and candidate of each pair that counts, of one kind.
    usable: Sequence[Sides]
    excluded: tuple[Exclusion, ...]

    @cached_property
    def _logs(self) -> tuple[Sequence[float], Sequence[float]]:
        """Return the logarithms of the times of the baseline, and of the candidate."""
        return (
            [math.log(baseline.value_ns) for baseline, _ in self.usable],
            [math.log(candidate.value_ns) for _, candidate in self.usable],
        )

    @cached_property
    def log_ratios(self) -> Sequence[float]:
        """Return the logarithm of the ratio of each pair."""
        return [baseline - candidate for baseline, candidate in zip(*self._logs, strict=True)]

    @cached_property
    def hidden_variance(self) -> float:
        """Return the variance that the clock's steps add to the mean of the log ratios, of one pair or more.

        Rounds share it: a time that always is cut to the same step is always wrong by the same amount.
        """
        steps = [
            step_variance(baseline.value_ns, baseline.clock_step_ns)
            + step_variance(candidate.value_ns, candidate.clock_step_ns)
            for baseline, candidate in self.usable
        ]
        return math.fsum(steps) / len(steps)

    @cached_property
    def baseline_ns(self) -> float | None:
        """Return the geometric mean of the baseline's times; None without a pair."""
        return _geometric_mean(self._logs[0])

    @cached_property
    def candidate_ns(self) -> float | None:
        """Return the geometric mean of the candidate's times; None without a pair."""
        return _geometric_mean(self._logs[1])

    @property
    def ratio(self) -> float | None:
        """Return baseline over candidate: above 1 means that the candidate is faster."""
        if not (self.baseline_ns and self.candidate_ns):
            return None
        return self.baseline_ns / self.candidate_ns

    @property
    def rounds(self) -> int:
        """Return the number of rounds that count."""
        return len({candidate.round for _, candidate in self.usable})

    @property
    def standard_error(self) -> float | None:
        """Return the standard error of the mean log ratio, by its own pairs alone; None of fewer than 2.

        A candidate has one pair in a round, a duplicate (A/A) one in each block of its baseline.
        """
        logs = self.log_ratios
        if len(logs) < 2:
            return None
        return math.sqrt(mean_and_variance(logs)[1] / len(logs) + self.hidden_variance)


def paired_means(pairs: Sequence[RoundPair], excluded: Iterable[Exclusion]) -> PairedMeans:
    """Return the pairs that count and their times; raises like `speedup`."""
    usable, others = _split_by_kind(pairs)
    return PairedMeans(usable=usable, excluded=tuple(sorted([*excluded, *others], key=block_key)))


def speedup(
    pairs: Iterable[RoundPair],
    *,
    excluded: Iterable[Exclusion] = (),
    margin: float = DEFAULT_MARGIN,
    confidence: float = CONFIDENCE,
    prior: VariancePrior | None = None,
) -> Speedup:
    """Compare over pairs. A pair is one observation: iterations inside one process are not independent.

    The interval is Student's t over the pairs' log ratios.

    Args:
        pairs: at most one for each block, in any order; those that cannot count are excluded with the reason.
        excluded: exclusions already known, to be listed too.
        margin: how far from 1 is still the same, as a fraction.
        confidence: of the interval; higher where rounds are inspected before all of them are run.
        prior: what the past of this pair on this device says of the variance of its rounds.

    Raises:
        ValueError: a block is there twice.
    """
    means = paired_means(list(pairs), excluded)
    return speedup_of(means, margin=margin, confidence=confidence, prior=prior)


def speedup_of(
    means: PairedMeans,
    *,
    margin: float = DEFAULT_MARGIN,
    confidence: float = CONFIDENCE,
    prior: VariancePrior | None = None,
) -> Speedup:
    """Compare over the pairs that count; arguments as for `speedup`."""
    usable, excluded, rounds = means.usable, means.excluded, means.rounds
    logs = means.log_ratios
    interval = None
    if rounds >= MIN_ROUNDS:
        hidden = means.hidden_variance
        interval = log_interval(logs, confidence=confidence, hidden_variance=hidden, prior=prior)
    verdict, reason = _verdict(interval, rounds, margin)
    if interval is None:
        reason += _main_exclusion_text(excluded) if usable or excluded else ": neither side has a measurement"
    ratio = means.ratio
    timed = [*logs, *(pair.log_ratio for pair in excluded if pair.log_ratio is not None)]
    return Speedup(
        ratio=ratio,
        ci_low=min(bounded_exp(interval.low), ratio) if interval and ratio else None,
        ci_high=max(bounded_exp(interval.high), ratio) if interval and ratio else None,
        verdict=verdict,
        reason=reason,
        rounds=rounds,
        pairs=len(usable),
        excluded=excluded,
        baseline_ns=means.baseline_ns,
        candidate_ns=means.candidate_ns,
        kind=usable[0][0].kind if usable else None,
        detectable=max(bounded_exp(interval.detectable) - 1, margin) if interval else None,
        p_value=interval.p_value if interval else None,
        not_slower=is_not_slower(interval.low, margin=margin) if interval else None,
        ratio_of_all=bounded_exp(math.fsum(timed) / len(timed)) if timed else None,
        moderated_by=prior.matrices if prior and interval else 0,
        log_error=interval.standard_error if interval else None,
        degrees=interval.degrees if interval else None,
    )


def pair_variance(pairs: Iterable[RoundPair]) -> PastVariance | None:
    """Return the variance of the log ratios of a pair, for comparisons to come; None with too few rounds."""
    means = paired_means(list(pairs), ())
    if means.rounds < MIN_ROUNDS:
        return None
    log_ratios = means.log_ratios
    return PastVariance(variance=mean_and_variance(log_ratios)[1], degrees=len(log_ratios) - 1)


def _split_by_kind(pairs: Sequence[RoundPair]) -> tuple[list[Sides], list[Exclusion]]:
    """Split into sides of one kind, and the rest; the kind of most rounds counts, samples on a tie."""
    if len({(pair.round, pair.block) for pair in pairs}) < len(pairs):
        raise ValueError("each block counts once")
    judged = [(pair, pair.sides) for pair in pairs]
    counts = Counter(sides[0].kind for _, sides in judged if isinstance(sides, tuple))
    kind = max(SampleKind, key=lambda kind: counts[kind])
    usable: list[Sides] = []
    excluded: list[Exclusion] = []
    for pair, sides in judged:
        if isinstance(sides, str):
            excluded.append(exclusion_of(pair, sides))
        elif sides[0].kind is not kind:
            excluded.append(exclusion_of(pair, f"its values are of {sides[0].kind}, most others of {kind}"))
        else:
            usable.append(sides)
    return usable, excluded


def _verdict(interval: LogInterval | None, rounds: int, margin: float) -> tuple[Verdict, str]:
    if interval is None:
        usable = "1 usable round" if rounds == 1 else f"{rounds} usable rounds"
        return Verdict.UNDECIDED, f"{usable}, at least {MIN_ROUNDS} make an interval"
    return verdict_on(interval.low, interval.high, margin=margin)


def _main_exclusion_text(excluded: Iterable[Exclusion]) -> str:
    """Describe what cost most of the rounds; a block that ran again cost none."""
    reasons = Counter(exclusion.reason for exclusion in excluded if exclusion.reason != SUPERSEDED_BLOCK)
    return f": {reasons.most_common(1)[0][0]}" if reasons else ""


def _geometric_mean(logs: Sequence[float]) -> float | None:
    return math.exp(math.fsum(logs) / len(logs)) if logs else None
