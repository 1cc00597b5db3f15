"""A report of an attempt: as it came, and with what its evidence says."""

from dataclasses import dataclass
from datetime import datetime

from farm.core.base.ids import AttemptId, Digest, HostId
from farm.core.checks.reference_run import ReferenceRun
from farm.core.errors import InvalidInput
from farm.core.jobs.attempt import AttemptOutcome
from farm.core.results.settle.new_measurement import NewMeasurement


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingReport:
    """A report as a host sent it."""

    host_id: HostId
    attempt_id: AttemptId
    body: bytes
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReading:
    """The content of a report, independent of other reports and rows."""

    outcome: AttemptOutcome
    #: None for a check, and for a run that brought none.
    measured: NewMeasurement | None = None
    #: Of a check that was passed; its verdict depends on other runs, and is given when it is settled.
    reference_run: ReferenceRun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReport:
    """A report that can be settled. Plan and program, by which it is parsed, never change."""

    incoming: IncomingReport
    digest: Digest
    #: Why it cannot be read; None where it need not be: it is refused, or was settled before.
    reading: ReportReading | InvalidInput | None

    @property
    def size_in_memory_bytes(self) -> int:
        """Return what it takes in memory, about: once as it came, once as it was parsed."""
        return len(self.incoming.body) * (1 if self.reading is None else 2)
