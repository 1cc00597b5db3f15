"""Changes from parsing stored evidence with a newer adapter."""

from dataclasses import dataclass
from enum import StrEnum

from farm.core.base.ids import AttemptId, JobId, MatrixId


class ReparseKind(StrEnum):
    """The kind of change from another parse of the same evidence."""

    #: It reads something otherwise: the new reading counts.
    CHANGED = "changed"
    #: It reads no time: the numbers stay, and enter no comparison any more.
    WITHDRAWN = "withdrawn"
    #: It reads a time where the older one read none: kept, and counted nowhere, as the job has ended.
    READABLE = "readable"
    #: The adapter fails on it, which is a fault of the farm's, or takes too long: nothing changes.
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReparseChange:
    """One attempt whose evidence is read otherwise."""

    kind: ReparseKind
    attempt_id: AttemptId
    job_id: JobId
    matrix_id: MatrixId
    harness: str
    #: None where the older one read no time, and so left no version.
    from_version: int | None
    to_version: int
    #: The differences, in words.
    what: str


def reparse_change_text(change: ReparseChange) -> str:
    """Describe a change for its event."""
    before = "" if change.from_version is None else f"{change.from_version} to "
    return f"{change.kind}: parser {before}{change.to_version} of {change.harness}: {change.what}"
