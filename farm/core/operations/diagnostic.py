"""What `farm doctor` finds on a machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from farm.core.errors import Blame


class Level(StrEnum):
    """How bad a finding is."""

    #: As it should be.
    OK = "ok"
    #: Works, and may surprise.
    WARNING = "warning"
    #: Does not work until somebody does something.
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. Invariant: what is not OK has a hint."""

    #: What was looked at, in a word or two.
    subject: str
    level: Level
    sentence: str
    hint: str | None = None
    #: Whose it is to mend.
    blame: Blame = Blame.HOST


def ok(subject: str, sentence: str) -> Finding:
    """A finding that leaves nothing to do."""
    return Finding(subject=subject, level=Level.OK, sentence=sentence)


def warning(subject: str, sentence: str, hint: str) -> Finding:
    """A finding to know of."""
    return Finding(subject=subject, level=Level.WARNING, sentence=sentence, hint=hint)


def problem(subject: str, sentence: str, hint: str, *, blame: Blame = Blame.HOST) -> Finding:
    """A finding to act on."""
    return Finding(subject=subject, level=Level.PROBLEM, sentence=sentence, hint=hint, blame=blame)


def blames(findings: Iterable[Finding]) -> set[Blame]:
    """Who has something to mend."""
    return {finding.blame for finding in findings if finding.level is Level.PROBLEM}
