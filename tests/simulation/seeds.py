"""Which seeds somebody asks for on the command line."""

import re
from argparse import ArgumentTypeError
from collections.abc import Collection

#: Nobody waits for more; a slip of the finger asks for them.
MOST = 100_000
_PART = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def seeds_in(text: str) -> Collection[int]:
    """Each seed once, in the order they are named: `17`, `0-500`, `17,23,40-45`.

    Raises:
        ArgumentTypeError: those are none, or too many.
    """
    seeds: dict[int, None] = {}
    for part in text.split(","):
        for seed in _range(part.strip()):
            seeds[seed] = None
            if len(seeds) > MOST:
                raise ArgumentTypeError(f"{text!r} names more than {MOST} seeds: play them in parts")
    return seeds.keys()


def _range(part: str) -> range:
    named = _PART.fullmatch(part)
    if named is None:
        raise ArgumentTypeError(f"{part!r} is no seed: write 17, or 0-500, or 17,23,40-45")
    first, last = int(named[1]), int(named[2] or named[1])
    if last < first:
        raise ArgumentTypeError(f"{part!r} ends before it begins: write {last}-{first}")
    return range(first, last + 1)
