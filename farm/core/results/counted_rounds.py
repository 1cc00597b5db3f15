"""The rounds of one cell that its numbers are taken over: all starts of it that count."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from farm.core.base.ids import FactsId
from farm.core.runs.measurement import COUNTED, Quality, SampleKind


class RoundValue(Protocol):
    """The measurement of one start of a cell: a baseline has one in each of its blocks of a round."""

    @property
    def round(self) -> int: ...
    @property
    def block(self) -> int: ...
    @property
    def repeat(self) -> int: ...
    @property
    def quality(self) -> Quality: ...
    @property
    def kind(self) -> SampleKind: ...
    @property
    def facts_id(self) -> FactsId | None: ...


ValueT = TypeVar("ValueT", bound=RoundValue)


def best_of_rounds(measured: Sequence[ValueT]) -> list[ValueT]:
    """Return one measurement for each block of a round: the latest repeat that counts, or else the latest."""
    best: dict[tuple[int, int], ValueT] = {}
    for value in sorted(measured, key=lambda value: (value.quality in COUNTED, value.repeat)):
        best[value.round, value.block] = value
    return [best[place] for place in sorted(best)]


def rounds_of_one_kind(rounds: Sequence[ValueT]) -> list[ValueT]:
    """Return the rounds that count, or all if there is none; of one kind, the one that most are of."""
    valid = [value for value in rounds if value.quality in COUNTED] or list(rounds)
    kinds = Counter(value.kind for value in valid)
    most = max(kinds, key=lambda kind: kinds[kind], default=None)
    return [value for value in valid if value.kind is most]


def rounds_of_one_build(rounds: Sequence[ValueT], builds: Mapping[FactsId, int]) -> list[ValueT]:
    """Return the rounds on the build of the device that most are of, the later of equals.

    Args:
        rounds: of one cell.
        builds: numbers of the device's builds, by what it was; without a number all builds are one.
    """
    if not builds:
        return [*rounds]
    numbers = [builds.get(value.facts_id, 0) if value.facts_id is not None else 0 for value in rounds]
    most = max(numbers, key=lambda number: (numbers.count(number), number), default=0)
    return [value for value, number in zip(rounds, numbers, strict=True) if number == most]
