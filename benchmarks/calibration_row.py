"""A row of the calibration's table: a figure beside its aim."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure, what it should be, and whether it is."""

    what: str
    measured: str
    aim: str
    holds: bool

    def __str__(self) -> str:
        verdict = "" if not self.aim else "MET" if self.holds else "MISSED"
        return f"{self.what:58}{self.measured:>10}  {self.aim:30}{verdict}".rstrip()


def at_most(what: str, value: float, aim: float, *, allowed: float = 0.0) -> Row:
    """Return a share that should be at most `aim`; `allowed` are two errors of so few matrices."""
    words = f"<= {aim:.1%}{', two errors allowed' if allowed else ''}"
    return Row(what=what, measured=f"{value:.1%}", aim=words, holds=value <= aim + allowed)


def two_errors(share: float, count: int) -> float:
    """Return two standard errors of a share of so many."""
    return 2 * math.sqrt(share * (1 - share) / count)
