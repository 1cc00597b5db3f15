"""How much quicker a candidate is than its baseline on one device, and how sure that is."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from farm.core.controls import ControlLevel
from farm.core.ids import FactsId
from farm.core.measurement import Quality, SampleKind
from farm.core.stats import t_quantile
from farm.core.verdict import DEFAULT_MARGIN, MIN_ROUNDS, Verdict

CONFIDENCE = 0.95
#: The chance to find an effect of the size of the minimum detectable one.
POWER = 0.8


class MeasuredValue(Protocol):
    """The measurement of one process start, as whoever keeps it has it."""

    @property
    def round(self) -> int: ...
    @property
    def repeat(self) -> int:
        """How often its block was started before."""

    @property
    def value_ns(self) -> float: ...
    @property
    def kind(self) -> SampleKind: ...
    @property
    def quality(self) -> Quality: ...
    @property
    def control_level(self) -> ControlLevel:
        """How much of the phone was in our hands then."""

    @property
    def facts_id(self) -> FactsId | None:
        """What its phone was then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPair:
    """Both sides of one round, measured in the same block; None where there is no measurement."""

    round: int
    baseline: MeasuredValue | None
    candidate: MeasuredValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A pair that does not count, and why."""

    round: int
    repeat: int
    reason: str


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
    #: Why the verdict is what it is, in words.
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
        """Candidate minus baseline: negative when the candidate is quicker."""
        if self.baseline_ns is None or self.candidate_ns is None:
            return None
        return self.candidate_ns - self.baseline_ns


OTHER_BUILD = "measured on another build of the phone than most rounds"
_RUN_AGAIN = "the block was run again, and a later repeat counts"
#: Baseline and candidate of a pair that can count.
_Sides = tuple[MeasuredValue, MeasuredValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interval:
    """On the log scale, where swapping the sides only changes the sign."""

    low: float
    high: float
    detectable: float


def paired_rounds(
    baseline: Sequence[MeasuredValue],
    candidate: Sequence[MeasuredValue],
    *,
    builds: Mapping[FactsId, int] | None = None,
    across_controls: bool = False,
) -> tuple[list[RoundPair], list[Exclusion]]:
    """Pair two cells of one device by round.

    A round's blocks are repeated as a whole, so only values of the same repeat are paired. The latest repeat
    in which both sides are valid counts for its round, every other one is an exclusion. Each side holds at
    most one value for a round and repeat. Where the phone was updated meanwhile, only rounds of one build
    count: of the one that most rounds were measured on, the later of equals.

    Args:
        baseline: the one cell.
        candidate: the other.
        builds: numbers of the phone's builds, by what it was; without a number all builds are one.
        across_controls: whether sides count whose phone was controlled in different degrees.
    """
    pairs: dict[int, RoundPair] = {}
    excluded: list[Exclusion] = []
    for pair, repeat in _blocks(baseline, candidate):
        sides = _sides(pair)
        if isinstance(sides, tuple) and not across_controls:
            sides = _of_one_level(sides)
        if isinstance(sides, tuple) and pair.round not in pairs:
            pairs[pair.round] = pair
            continue
        reason = sides if isinstance(sides, str) else _RUN_AGAIN
        excluded.append(Exclusion(round=pair.round, repeat=repeat, reason=reason))
    paired = sorted(pairs.values(), key=lambda pair: pair.round)
    counted, of_others = _of_one_build(paired, builds or {})
    return counted, sorted([*excluded, *of_others], key=_position)


def speedup(
    pairs: Iterable[RoundPair], *, excluded: Iterable[Exclusion] = (), margin: float = DEFAULT_MARGIN
) -> Speedup:
    """Compare over rounds. A round is one observation: iterations inside one process are not independent.

    The interval is Student's t over the rounds' log ratios. The equivalence margin is symmetric on that
    scale: 2 % means from 1/1.02 to 1.02.

    Args:
        pairs: at most one for each round, in any order; those that cannot count are excluded with the reason.
        excluded: exclusions already known, to be listed too.
        margin: how far from 1 is still the same, as a fraction.

    Raises:
        ValueError: a round is there twice.
    """
    usable, unusable = _sorted_out(list(pairs))
    logs = [math.log(baseline.value_ns) - math.log(candidate.value_ns) for baseline, candidate in usable]
    interval = _interval(logs) if len(logs) >= MIN_ROUNDS else None
    left_out = tuple(sorted([*excluded, *unusable], key=_position))
    verdict, reason = _verdict(interval, len(logs), margin)
    if interval is None:
        reason += _mostly(left_out) if usable or left_out else ": neither side has a measurement"
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


def _blocks(
    baseline: Sequence[MeasuredValue], candidate: Sequence[MeasuredValue]
) -> list[tuple[RoundPair, int]]:
    """All pairs of a round and repeat, the latest repeat first."""
    sides = [{(value.round, value.repeat): value for value in side} for side in (baseline, candidate)]
    keys = sorted({*sides[0], *sides[1]}, reverse=True)
    return [
        (RoundPair(round=key[0], baseline=sides[0].get(key), candidate=sides[1].get(key)), key[1])
        for key in keys
    ]


def _of_one_level(sides: _Sides) -> _Sides | str:
    levels = [side.control_level for side in sides]
    if levels[0] == levels[1]:
        return sides
    baseline, candidate = (level.name.lower() for level in levels)
    return f"the baseline ran with its phone {baseline}, the candidate with it {candidate}"


def _of_one_build(
    pairs: Sequence[RoundPair], builds: Mapping[FactsId, int]
) -> tuple[list[RoundPair], list[Exclusion]]:
    """Split into pairs that both sides of ran on one build, and the rest."""
    of_pairs = [_builds(pair, builds) for pair in pairs]
    of_one = [min(each) for each in of_pairs if len(each) == 1]
    most = max(of_one, key=lambda build: (of_one.count(build), build), default=None)
    counted = [pair for pair, each in zip(pairs, of_pairs, strict=True) if each <= {most}]
    others = [pair for pair, each in zip(pairs, of_pairs, strict=True) if not each <= {most}]
    return counted, [_exclusion(pair, OTHER_BUILD) for pair in others]


def _builds(pair: RoundPair, builds: Mapping[FactsId, int]) -> set[int]:
    """The builds that a pair was measured on."""
    sides = [side.facts_id for side in (pair.baseline, pair.candidate) if side is not None]
    return {builds.get(facts_id, 0) for facts_id in sides if facts_id is not None}


def _sides(pair: RoundPair) -> _Sides | str:
    """Baseline and candidate of a pair that can count, or why it cannot."""
    baseline, candidate = pair.baseline, pair.candidate
    if baseline is None or candidate is None:
        return f"the {'candidate' if baseline else 'baseline'} has no measurement"
    for name, value in (("baseline", baseline), ("candidate", candidate)):
        if value.quality is not Quality.VALID:
            return f"the {name} is {value.quality}"
        if not (math.isfinite(value.value_ns) and value.value_ns > 0):
            return f"the {name}'s value is not a positive time"
    if baseline.kind is not candidate.kind:
        return f"the baseline's value is of {baseline.kind}, the candidate's of {candidate.kind}"
    return baseline, candidate


def _sorted_out(pairs: Sequence[RoundPair]) -> tuple[list[_Sides], list[Exclusion]]:
    """Split into sides of one kind, and the rest; the kind of most rounds counts, samples on a tie."""
    if len({pair.round for pair in pairs}) < len(pairs):
        raise ValueError("each round counts once")
    judged = [(pair, _sides(pair)) for pair in pairs]
    counts = Counter(sides[0].kind for _, sides in judged if isinstance(sides, tuple))
    kind = max(SampleKind, key=lambda kind: counts[kind])
    usable: list[_Sides] = []
    unusable: list[Exclusion] = []
    for pair, sides in judged:
        if isinstance(sides, str):
            unusable.append(_exclusion(pair, sides))
        elif sides[0].kind is not kind:
            unusable.append(_exclusion(pair, f"its values are of {sides[0].kind}, most others of {kind}"))
        else:
            usable.append(sides)
    return usable, unusable


def _exclusion(pair: RoundPair, reason: str) -> Exclusion:
    return Exclusion(round=pair.round, repeat=_repeat(pair), reason=reason)


def _repeat(pair: RoundPair) -> int:
    return max((side.repeat for side in (pair.baseline, pair.candidate) if side), default=0)


def _position(exclusion: Exclusion) -> tuple[int, int]:
    return exclusion.round, exclusion.repeat


def _interval(logs: Sequence[float]) -> _Interval:
    """Student's t interval of the mean, and the minimum detectable effect at 80 % power.

    The latter is (t[0.975] + t[0.8]) x standard error: Bloom, "Minimum Detectable Effects", Evaluation Review
    19(5), 1995. Sums are exactly rounded, so the order of the rounds cannot show.
    """
    count = len(logs)
    mean = math.fsum(logs) / count
    variance = math.fsum((log - mean) ** 2 for log in logs) / (count - 1)
    error = math.sqrt(variance / count)
    t = t_quantile((1 + CONFIDENCE) / 2, count - 1)
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


def _mostly(left_out: Iterable[Exclusion]) -> str:
    """What cost most of the rounds; a block that was run again cost none."""
    reasons = Counter(each.reason for each in left_out if each.reason != _RUN_AGAIN)
    return f": {reasons.most_common(1)[0][0]}" if reasons else ""


def _geometric_mean(values_ns: Sequence[float]) -> float | None:
    if not values_ns:
        return None
    return math.exp(math.fsum(map(math.log, values_ns)) / len(values_ns))


def _exp(log: float) -> float:
    """`math.exp` that does not raise on intervals of absurd width."""
    return math.exp(min(log, 700.0))
