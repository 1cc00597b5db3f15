"""A measurement that is to be recorded, and the series that it belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, FactsId, JobId
from farm.core.base.setting_values import SettingValue
from farm.core.devices.controls import ControlState
from farm.core.models.variant import Recipe
from farm.core.runs.measurement import QualityAssessment, Reading, SampleSummary


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
    """A reading that is to be its job's accepted measurement."""

    job_id: JobId
    attempt_id: AttemptId
    cell_id: CellId
    series: NewSeries
    round: int
    repeat: int
    variant_digest: Digest | None
    program_digest: Digest
    facts_id: FactsId | None
    reading: Reading
    summary: SampleSummary
    judgement: QualityAssessment
    #: What is to be known of it without being held against it.
    notices: Sequence[str] = ()
    controls: Sequence[ControlState] = ()
    cpu_s: float | None = None
    parser_version: int
    measured_at: datetime
    #: Of a job that ended otherwise there is none: what is read of it later is kept, and counts for nothing.
    accepted: bool = True
