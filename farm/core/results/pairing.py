"""Pairing of the measurements of two cells on one device, round by round."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from farm.core.base.ids import FactsId
from farm.core.devices.controls import ControlLevel
from farm.core.results.statistics.pair_distance import (
    RunStart,
    difference_of_starts,
    minutes_apart,
    restarted_between,
)
from farm.core.runs.measurement import COUNTED, Quality, SampleKind

OTHER_BUILD = "measured on another build of the phone than most rounds"
TO_COME = "its other side is still to run, or was cancelled"
SUPERSEDED_BLOCK = "the block was run again, and a later repeat counts"

#: Their time is not one of what was asked for.
_OF_OTHER_WORK = frozenset(
    {
        Quality.FALLBACK,
        Quality.UNPROVEN,
        Quality.WRONG_OUTPUT,
        Quality.IMPLAUSIBLE,
        Quality.WITHDRAWN,
    }
)


#: Round, block within it, and repeat: what is started together.
BlockKey = tuple[int, int, int]


class InBlock(Protocol):
    """What belongs to one block."""

    @property
    def round(self) -> int: ...
    @property
    def block(self) -> int:
        """Return the number of its block within the round."""

    @property
    def repeat(self) -> int:
        """Return how often its block was started before."""


#: The block of a start, or of a pair that does not count.
block_key: Callable[[InBlock], BlockKey] = attrgetter("round", "block", "repeat")


class MeasuredValue(InBlock, RunStart, Protocol):
    """The measurement of one process start, as its owner stores it."""

    @property
    def value_ns(self) -> float: ...
    @property
    def clock_step_ns(self) -> int: ...
    @property
    def kind(self) -> SampleKind: ...
    @property
    def quality(self) -> Quality: ...
    @property
    def control_level(self) -> ControlLevel:
        """Return the control level of the measurement."""

    @property
    def facts_id(self) -> FactsId | None:
        """Return the device facts of the measurement."""


# Not frozen: a page makes thousands, and keeps what `sides` finds.
@dataclass(slots=True, kw_only=True)
class RoundPair:
    """Both sides of one round, measured in the same block; None where there is no measurement.

    A candidate has one pair in a round; a duplicate (A/A) has one in each block of its baseline.
    """

    round: int
    block: int
    baseline: MeasuredValue | None
    candidate: MeasuredValue | None
    #: What `sides` has found.
    _sides: "Sides | str | None" = field(init=False, default=None, compare=False, repr=False)

    @property
    def sides(self) -> "Sides | str":
        """Return baseline and candidate where the pair counts, or why it does not."""
        if self._sides is None:
            self._sides = _sides_of(self.baseline, self.candidate)
        return self._sides

    @property
    def minutes_apart(self) -> float | None:
        """Return the minutes between the beginnings of both sides; None where that is not known."""
        if self.baseline is None or self.candidate is None:
            return None
        return minutes_apart(self.baseline, self.candidate)

    @property
    def restarted(self) -> bool | None:
        """Tell whether the device restarted between both sides; None where that is not known."""
        if self.baseline is None or self.candidate is None:
            return None
        return restarted_between(self.baseline.boot_id, self.candidate.boot_id)


class Side(StrEnum):
    """The side of a pair that a reason is of."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A pair that does not count, and why."""

    round: int
    block: int
    repeat: int
    reason: str
    side: Side
    #: Of baseline over candidate, where both were timed at what was asked for.
    log_ratio: float | None = None
    #: Between the beginnings of both sides; None where that is not known, or the device restarted.
    minutes_apart: float | None = None
    restarted: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedValue:
    """A baseline and its duplicates in one block, as one measurement: the geometric mean of their times."""

    round: int
    block: int
    repeat: int
    value_ns: float
    clock_step_ns: int
    kind: SampleKind
    quality: Quality
    control_level: ControlLevel
    facts_id: FactsId | None
    start_skin_c: float | None = None
    start_battery_c: float | None = None
    boot_id: str | None = None
    #: The mean of the beginnings.
    start_uptime_s: float | None = None


def join_duplicates(
    baseline: Sequence[MeasuredValue], duplicates: Sequence[MeasuredValue]
) -> list[MeasuredValue]:
    """Join the duplicates of a baseline (A/A) with it, block by block.

    They are starts of one file and program, so their mean varies less than one of them. Those are joined
    that count and were measured alike; where only one counts, it stands for the baseline.
    """
    blocks: dict[BlockKey, list[MeasuredValue]] = {}
    for value in (*baseline, *duplicates):
        blocks.setdefault(block_key(value), []).append(value)
    return [_joined(values) for values in blocks.values()]


def _joined(values: Sequence[MeasuredValue]) -> MeasuredValue:
    first, *others = [value for value in values if value.quality in COUNTED and _is_time(value)] or values[:1]
    alike = [first, *(value for value in others if _is_alike(first, value))]
    if len(alike) == 1:
        return first
    return JoinedValue(
        round=first.round,
        block=first.block,
        repeat=first.repeat,
        value_ns=math.exp(math.fsum(math.log(value.value_ns) for value in alike) / len(alike)),
        clock_step_ns=max(value.clock_step_ns for value in alike),
        kind=first.kind,
        quality=Quality.VALID,
        control_level=first.control_level,
        facts_id=first.facts_id,
        start_skin_c=first.start_skin_c,
        start_battery_c=first.start_battery_c,
        boot_id=first.boot_id,
        start_uptime_s=_mean([value.start_uptime_s for value in alike]),
    )


def _is_alike(one: MeasuredValue, other: MeasuredValue) -> bool:
    return (
        one.kind is other.kind
        and one.control_level == other.control_level
        and one.facts_id == other.facts_id
        and not restarted_between(one.boot_id, other.boot_id)
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if len(known) == len(values) else None


ValueT = TypeVar("ValueT", bound=MeasuredValue)


@dataclass(frozen=True, kw_only=True)
class SharedBaseline(Generic[ValueT]):
    """What was measured of a baseline: shared by the candidates that are compared with it."""

    #: Oldest first.
    starts: Sequence[ValueT]
    #: Of its duplicates, which join it; none for a candidate that is one.
    duplicates: Sequence[ValueT] = ()

    @cached_property
    def joined(self) -> Sequence[MeasuredValue]:
        """Return the baseline with its duplicates, one value for each block."""
        return join_duplicates(self.starts, self.duplicates)


#: Baseline and candidate of a pair that can count.
Sides = tuple[MeasuredValue, MeasuredValue]


def paired_rounds(
    baseline: Sequence[MeasuredValue],
    candidate: Sequence[MeasuredValue],
    *,
    builds: Mapping[FactsId, int] | None = None,
    across_controls: bool = False,
    is_over: bool = True,
) -> tuple[list[RoundPair], list[Exclusion]]:
    """Pair two cells of one device by round.

    Blocks are repeated as a whole, so only values of the same block and repeat are paired. The latest repeat
    in which both sides are valid counts for its block, every other one is an exclusion. Each side holds at
    most one value for a block and repeat. Where the phone was updated in between, only rounds of one build
    count: of the one that most rounds were measured on, the later of equals.

    Args:
        baseline: the one cell.
        candidate: the other.
        builds: numbers of the phone's builds, by what it was; without a number all builds are one.
        across_controls: whether sides count whose phone was controlled in different degrees.
        is_over: whether nothing is left to run: else one side of the last block may be to come.
    """
    pairs: dict[tuple[int, int], RoundPair] = {}
    excluded: list[Exclusion] = []
    blocks = _blocks(baseline, candidate)
    for pair in blocks:
        sides = pair.sides
        if isinstance(sides, tuple) and not across_controls:
            sides = _same_control_level(sides)
        if isinstance(sides, tuple) and pairs.setdefault((pair.round, pair.block), pair) is pair:
            continue
        reason = sides if isinstance(sides, str) else SUPERSEDED_BLOCK
        if not is_over and pair is blocks[0] and None in (pair.baseline, pair.candidate):
            reason = TO_COME
        excluded.append(exclusion_of(pair, reason))
    paired = [pairs[place] for place in sorted(pairs)]
    counted, of_others = _split_by_build(paired, builds or {})
    return counted, sorted([*excluded, *of_others], key=block_key)


def _blocks(baseline: Sequence[MeasuredValue], candidate: Sequence[MeasuredValue]) -> list[RoundPair]:
    """Return all pairs of a block and repeat, the latest repeat first."""
    baselines, candidates = ({block_key(value): value for value in side} for side in (baseline, candidate))
    keys = sorted({*_shared_blocks(baselines, candidates), *candidates}, reverse=True)
    return [
        RoundPair(round=key[0], block=key[1], baseline=baselines.get(key), candidate=candidates.get(key))
        for key in keys
    ]


def _shared_blocks(baseline: Collection[BlockKey], candidate: Collection[BlockKey]) -> list[BlockKey]:
    """Return the blocks of a baseline that its candidate is in, too, or would be, had it been measured.

    A candidate is in one block of each round, mostly the same one; a duplicate is in all of its baseline's.
    """
    blocks: dict[int, set[int]] = {}
    for round, block, _ in candidate:
        blocks.setdefault(round, set()).add(block)
    if not candidate:
        # Nothing tells which: the first one stands for it.
        blocks = {round: {block} for round, block, _ in sorted(baseline, reverse=True)}
    if any(len(of_round) > 1 for of_round in blocks.values()):
        return [*baseline]
    for round, _, _ in baseline:
        if round not in blocks:
            blocks[round] = blocks[min(blocks, key=lambda other: abs(other - round))]
    return [key for key in baseline if key[1] in blocks[key[0]]]


def _same_control_level(sides: Sides) -> Sides | str:
    baseline, candidate = (side.control_level for side in sides)
    if baseline == candidate:
        return sides
    levels_apart = f"the baseline ran at control level {baseline.word}, the candidate at {candidate.word}"
    return f"{levels_apart}: `farm speedups --across-controls` compares them anyway"


def _split_by_build(
    pairs: Sequence[RoundPair], builds: Mapping[FactsId, int]
) -> tuple[list[RoundPair], list[Exclusion]]:
    """Split into pairs that both sides of ran on one build, and the rest."""
    if not builds:
        return [*pairs], []
    of_pairs = [_builds(pair, builds) for pair in pairs]
    of_one = [min(used) for used in of_pairs if len(used) == 1]
    most = max(of_one, key=lambda build: (of_one.count(build), build), default=None)
    counted = [pair for pair, used in zip(pairs, of_pairs, strict=True) if used <= {most}]
    others = [pair for pair, used in zip(pairs, of_pairs, strict=True) if not used <= {most}]
    return counted, [exclusion_of(pair, OTHER_BUILD) for pair in others]


def _builds(pair: RoundPair, builds: Mapping[FactsId, int]) -> set[int]:
    """Return the builds that a pair was measured on."""
    sides = [side.facts_id for side in (pair.baseline, pair.candidate) if side is not None]
    return {builds.get(facts_id, 0) for facts_id in sides if facts_id is not None}


def used_pairs(pairs: Sequence[RoundPair], excluded: Sequence[Exclusion]) -> list[RoundPair]:
    """Return the pairs that are not excluded."""
    if not excluded:
        return [*pairs]
    excluded_blocks = set(map(block_key, excluded))
    return [pair for pair in pairs if block_of(pair) not in excluded_blocks]


def block_of(pair: RoundPair) -> BlockKey:
    """Return the block of a pair."""
    baseline, candidate = pair.baseline, pair.candidate
    if baseline is None or candidate is None:
        one = baseline or candidate
        return pair.round, pair.block, 0 if one is None else one.repeat
    return pair.round, pair.block, max(baseline.repeat, candidate.repeat)


def _sides_of(baseline: MeasuredValue | None, candidate: MeasuredValue | None) -> Sides | str:
    """Return both sides of a pair that counts, or why it does not."""
    if baseline is None or candidate is None:
        return f"the {'candidate' if baseline else 'baseline'} has no measurement"
    for name, value in (("baseline", baseline), ("candidate", candidate)):
        if value.quality not in COUNTED:
            return f"the {name} is {value.quality}"
        if not _is_time(value):
            return f"the {name}'s value is not a positive time"
    if baseline.kind is not candidate.kind:
        return f"the baseline's value is of {baseline.kind}, the candidate's of {candidate.kind}"
    return difference_of_starts(baseline, candidate) or (baseline, candidate)


def exclusion_of(pair: RoundPair, reason: str) -> Exclusion:
    """Return a pair as an exclusion."""
    round, block, repeat = block_of(pair)
    return Exclusion(
        round=round,
        block=block,
        repeat=repeat,
        reason=reason,
        side=_side_left_out(pair),
        log_ratio=_log_ratio(pair),
        minutes_apart=pair.minutes_apart,
        restarted=pair.restarted,
    )


def _side_left_out(pair: RoundPair) -> Side:
    """Return the side that cannot count; both where it is neither alone: they do not go together."""
    counts = [
        value is not None and value.quality in COUNTED and _is_time(value)
        for value in (pair.baseline, pair.candidate)
    ]
    if counts[0] == counts[1]:
        return Side.BOTH
    return Side.CANDIDATE if counts[0] else Side.BASELINE


def _log_ratio(pair: RoundPair) -> float | None:
    sides = [value for value in (pair.baseline, pair.candidate) if value is not None]
    if len(sides) < 2 or sides[0].kind is not sides[1].kind:
        return None
    if any(value.quality in _OF_OTHER_WORK or not _is_time(value) for value in sides):
        return None
    return math.log(sides[0].value_ns) - math.log(sides[1].value_ns)


def _is_time(value: MeasuredValue) -> bool:
    return math.isfinite(value.value_ns) and value.value_ns > 0
