"""Counts of what a model file contains."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod

#: Networks have some thousand operators; a count of this many takes about a second.
MOST_OPERATORS = 200_000
#: Longer names, and names of more kinds, are not those of a runtime.
MOST_KINDS, _LONGEST_NAME = 256, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContents:
    """What is counted in a file."""

    #: Weights, in whatever number format; None where the file does not show them.
    parameters: int | None = None
    #: How many of each kind, by the runtime's name, the most frequent first; empty where the file shows none.
    #: A part that is compiled for a delegate is one operator, with the name of the delegate.
    operators: Mapping[str, int] = field(default_factory=dict)


def few(places: range) -> range:
    """Return the places of a list that a network can have.

    Raises:
        ValueError: there are more.
    """
    if len(places) > MOST_OPERATORS:
        raise ValueError(f"a list has {len(places)} items, at most {MOST_OPERATORS} are read")
    return places


def count_operators(names: Iterable[str]) -> Mapping[str, int]:
    """Return how many operators there are of each name, the most frequent first.

    Raises:
        ValueError: there are more operators or names than a network has.
    """
    listed = list(islice(names, MOST_OPERATORS + 1))
    counted = Counter(name[:_LONGEST_NAME] or "unnamed" for name in listed)
    if len(listed) > MOST_OPERATORS or len(counted) > MOST_KINDS:
        raise ValueError(f"it has more than {MOST_OPERATORS} operators, or {MOST_KINDS} kinds of them")
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def count_weights(shapes: Iterable[Sequence[int]]) -> int:
    """Return how many numbers tensors of these shapes hold together.

    Raises:
        ValueError: one has a size that no tensor of a file has, or all are more than a file holds.
    """
    total = 0
    for shape in shapes:
        if any(size < 0 for size in shape):
            raise ValueError("a weight has a size that is not known")
        total += prod(shape)
        if total >= 2**53:
            raise ValueError("it has more weights than a file holds")
    return total
