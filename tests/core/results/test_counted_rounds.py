"""Which measurements of a cell its numbers are taken over."""

from dataclasses import dataclass

from farm.core.base.ids import FactsId
from farm.core.results.counted_rounds import best_of_rounds, rounds_of_one_build, rounds_of_one_kind
from farm.core.runs.measurement import Quality, SampleKind


@dataclass(frozen=True, kw_only=True)
class Value:
    round: int
    block: int = 0
    repeat: int = 0
    quality: Quality = Quality.VALID
    kind: SampleKind = SampleKind.SAMPLES
    facts_id: FactsId | None = None


def test_a_round_counts_once_by_its_latest_valid_repeat() -> None:
    first, again = Value(round=1), Value(round=1, repeat=1)
    short = Value(round=1, repeat=2, quality=Quality.SHORT)
    other = Value(round=2, quality=Quality.SHORT)
    assert best_of_rounds([other, short, first, again]) == [again, other]


def test_a_baseline_counts_once_in_each_of_its_blocks() -> None:
    starts = [Value(round=round, block=block) for round in (1, 2) for block in (0, 3)]
    again = Value(round=1, block=3, repeat=1)
    assert best_of_rounds([*starts, again]) == [starts[0], again, *starts[2:]]


def test_without_a_valid_round_all_count() -> None:
    short = [Value(round=number, quality=Quality.SHORT) for number in (1, 2)]
    assert rounds_of_one_kind(short) == short
    assert rounds_of_one_kind([*short, Value(round=3)]) == [Value(round=3)]
    noisy = Value(round=4, quality=Quality.NOISY)
    assert rounds_of_one_kind([*short, Value(round=3), noisy]) == [Value(round=3), noisy]
    assert rounds_of_one_kind([]) == []


def test_the_later_of_two_builds_with_as_many_rounds_counts() -> None:
    rounds = [Value(round=number, facts_id=FactsId(1 + number // 3)) for number in (1, 2, 3, 4)]
    builds = {FactsId(1): 0, FactsId(2): 1}
    assert [value.round for value in rounds_of_one_build(rounds, builds)] == [3, 4]
    assert rounds_of_one_build(rounds, {}) == rounds
