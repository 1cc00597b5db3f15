"""A text that shows a kind of failure."""

import re
from dataclasses import dataclass

from farm.harness.failures.kinds import FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePattern:
    """A pattern, and what has happened where it is found."""

    pattern: re.Pattern[str]
    kind: FailureKind
    #: Programs say it and go on, too: it decides only where nothing else does, another sign or a signal.
    is_weak: bool = False


def failure_pattern(pattern: str, kind: FailureKind, *, is_weak: bool = False) -> FailurePattern:
    """A sign by its pattern."""
    return FailurePattern(pattern=re.compile(pattern), kind=kind, is_weak=is_weak)
