"""A text that shows a kind of failure."""

import re
from dataclasses import dataclass

from farm.harness.failures.kinds import FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePattern:
    """A pattern, and the kind of failure that it shows."""

    pattern: re.Pattern[str]
    kind: FailureKind
    #: Programs also print it and go on: it decides only without another pattern or a signal.
    is_weak: bool = False


def failure_pattern(pattern: str, kind: FailureKind, *, is_weak: bool = False) -> FailurePattern:
    """Compile a failure pattern."""
    return FailurePattern(pattern=re.compile(pattern), kind=kind, is_weak=is_weak)
