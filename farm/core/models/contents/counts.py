"""Counts of what a model file contains."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod

from farm.core.models.variant import SlowPath

#: Networks have some thousand operators; a count of this many takes about a second.
MOST_OPERATORS = 200_000
#: Longer names, and names of more kinds, are not those of a runtime.
MOST_KINDS, _LONGEST_NAME = 256, 200
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContents:
    """What is counted in a file."""

    #: Weights, in whatever number format; None where the file does not show them.
    parameters: int | None = None
    #: How many of each kind, by the runtime's name, the most frequent first; empty where the file shows none.
    #: A part that is compiled for a delegate is one operator, with the name of the delegate.
    operators: Mapping[str, int] = field(default_factory=dict)
    #: Multiply-accumulates of one inference, those of convolutions and products of matrices; 1 MAC = 2 FLOP.
    #: None where they cannot be counted.
    macs: int | None = None
    #: Why they are not; None where they are.
    macs_uncounted: str | None = None
    slow_path: SlowPath | None = None


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


class Uncountable(ValueError):
    """The multiply-accumulates of a file cannot be counted; the message is the reason."""


def count_macs(counts: Iterable[int]) -> tuple[int | None, str | None]:
    """Return the multiply-accumulates of all operators together, or why they are not counted.

    Args:
        counts: one for each operator; whatever raises a ValueError there leaves all of them uncounted, for
            a part is not to be taken for the whole.
    """
    total = 0
    try:
        for count in counts:
            total += count
            if count < 0 or total >= 2**53:
                raise Uncountable("a tensor has a size that none can have")
    except ValueError as error:
        return None, str(error)[:_LONGEST_REASON]
    return total, None


def product(shape: Sequence[int]) -> int:
    """Return how many numbers a tensor of a shape holds.

    Raises:
        Uncountable: a size is free.
    """
    if any(size < 0 for size in shape):
        raise Uncountable("sizes are free")
    return prod(shape)
