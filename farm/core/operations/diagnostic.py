"""Diagnostics of `farm doctor`."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from farm.core.errors import Blame


class Severity(StrEnum):
    """The severity of a diagnostic."""

    #: As it should be.
    OK = "ok"
    #: Works, and may surprise.
    WARNING = "warning"
    #: Does not work until a person acts.
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """The result of one check. Invariant: what is not OK has a hint."""

    #: The subject of the check, in a word or two.
    subject: str
    level: Severity
    message: str
    hint: str | None = None
    #: The party that can fix it.
    blame: Blame = Blame.HOST


def ok(subject: str, message: str) -> Diagnostic:
    """Return a diagnostic that needs no action."""
    return Diagnostic(subject=subject, level=Severity.OK, message=message)


def warning(subject: str, message: str, hint: str) -> Diagnostic:
    """Return a diagnostic to be aware of."""
    return Diagnostic(subject=subject, level=Severity.WARNING, message=message, hint=hint)


def problem(subject: str, message: str, hint: str, *, blame: Blame = Blame.HOST) -> Diagnostic:
    """Return a diagnostic that needs action."""
    return Diagnostic(subject=subject, level=Severity.PROBLEM, message=message, hint=hint, blame=blame)


def blamed_parties(findings: Iterable[Diagnostic]) -> set[Blame]:
    """Return the parties that have something to fix."""
    return {finding.blame for finding in findings if finding.level is Severity.PROBLEM}
