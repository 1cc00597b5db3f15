"""A report of an attempt: as it came, what its evidence says, and the answer to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, HostId
from farm.core.base.setting_values import SettingValue
from farm.core.checks.reference_run import ReferenceRun
from farm.core.errors import InvalidInput
from farm.core.jobs.attempt import AttemptOutcome
from farm.core.models.variant import Recipe
from farm.core.runs.measurement import Outcome, Quality, RunFailure
from farm.core.runs.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeries:
    """A series, with the digest that identifies it."""

    digest: Digest
    model: str | None
    recipe: Recipe | None
    backend: str
    harness: str
    settings: Mapping[str, SettingValue]
    device_id: DeviceId


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMeasurement:
    """The measurement of a job: what consequences depend on, and the rest of its row."""

    attempt_id: AttemptId
    cell_id: CellId
    series: NewSeries
    quality: Quality
    actual_backend: str
    accelerator: str
    proof: str
    placement: Placement | None
    #: Why its block is run again although it is valid: the device was too different before another of a pair.
    apart: str | None = None
    #: The other columns as they are stored; what takes time, such as packing samples, is done.
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingReport:
    """A report as a host sent it."""

    host_id: HostId
    attempt_id: AttemptId
    body: bytes
    at: datetime

    @property
    def size_in_memory_bytes(self) -> int:
        """Return what it takes in memory, about."""
        return len(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReading:
    """The content of a report, independent of other reports and rows."""

    outcome: AttemptOutcome
    #: The reason why nothing was measured, or a check was not passed.
    failure: RunFailure | None = None
    #: None for a check, and for a run that brought none.
    measured: NewMeasurement | None = None
    #: Of a check that was passed; its verdict depends on other runs, and is given when it is settled.
    reference_run: ReferenceRun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReport:
    """A report that can be settled. Plan and program, by which it is parsed, never change."""

    incoming: IncomingReport
    digest: Digest
    #: The reason why it cannot be read; None where it need not be: it is refused, or was settled before.
    reading: ReportReading | InvalidInput | None

    @property
    def size_in_memory_bytes(self) -> int:
        """Return what it takes in memory, about: once as it came, once as it was parsed."""
        return self.incoming.size_in_memory_bytes * (1 if self.reading is None else 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAnswer:
    """The result of a report. `counted` is false when the attempt was no longer its job's current one."""

    #: Sent as a document of its own: unknown keys are refused, as in every document of `farm.wire`.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    attempt_id: AttemptId
    counted: bool
    outcome: Outcome | None = None
    message: str = ""
