"""What `farm doctor` finds on a machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from farm.core.errors import Blame


class Severity(StrEnum):
    """How bad a finding is."""

    #: As it should be.
    OK = "ok"
    #: Works, and may surprise.
    WARNING = "warning"
    #: Does not work until somebody does something.
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One thing that was looked at. Invariant: what is not OK has a hint."""

    #: What was looked at, in a word or two.
    subject: str
    level: Severity
    message: str
    hint: str | None = None
    #: Whose it is to mend.
    blame: Blame = Blame.HOST


def ok(subject: str, message: str) -> Diagnostic:
    """A finding that leaves nothing to do."""
    return Diagnostic(subject=subject, level=Severity.OK, message=message)


def warning(subject: str, message: str, hint: str) -> Diagnostic:
    """A finding to know of."""
    return Diagnostic(subject=subject, level=Severity.WARNING, message=message, hint=hint)


def problem(subject: str, message: str, hint: str, *, blame: Blame = Blame.HOST) -> Diagnostic:
    """A finding to act on."""
    return Diagnostic(subject=subject, level=Severity.PROBLEM, message=message, hint=hint, blame=blame)


def blamed_parties(findings: Iterable[Diagnostic]) -> set[Blame]:
    """Who has something to mend."""
    return {finding.blame for finding in findings if finding.level is Severity.PROBLEM}
