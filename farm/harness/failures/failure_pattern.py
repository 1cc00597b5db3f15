"""A text that shows a kind of failure."""

import re
from dataclasses import dataclass

from farm.harness.failures.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A pattern, and what has happened where it is found."""

    pattern: re.Pattern[str]
    kind: Kind
    #: Programs say it and go on, too: it decides only where nothing else does, another sign or a signal.
    is_weak: bool = False


def sign(pattern: str, kind: Kind, *, is_weak: bool = False) -> Sign:
    """A sign by its pattern."""
    return Sign(pattern=re.compile(pattern), kind=kind, is_weak=is_weak)
