"""Documents that explain one number, or one comparison."""

from datetime import datetime

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, JobId, MatrixId
from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Condition, ConditionRange, Gates
from farm.core.devices.cpu_peak import PeakShare
from farm.core.devices.device import DeviceFacts
from farm.core.jobs.run_order import RunOrder
from farm.core.models.variant import Manifest
from farm.core.results.looks.look import Look
from farm.core.results.pairing import Exclusion
from farm.core.runs.measurement import Metric, Outcome, Quality, SampleKind
from farm.core.runs.trace import RunTrace
from farm.wire.base import Wire
from farm.wire.documents.matrices.jobs import JobView
from farm.wire.documents.results.speedups import SpeedupView


class MeasurementView(Wire):
    """One measurement: a process start that yielded a value."""

    job_id: JobId
    attempt_id: AttemptId
    round: int
    block: int
    repeat: int
    quality: Quality
    quality_reasons: tuple[str, ...]
    kind: SampleKind
    sample_count: int
    value_ns: float
    mean_ns: float
    min_ns: int | None
    max_ns: int | None
    p90_ns: float | None
    scatter: float | None
    metrics: tuple[Metric, ...]
    actual_backend: str
    accelerator: str
    proof: str
    parser_version: int
    variant_digest: Digest | None
    program_digest: Digest
    measured_at: datetime
    fence: int
    #: What ran on the device before it, and its place in its block.
    order: RunOrder | None


class PlacementView(Wire):
    """The placement of some runs, and the lines that show it."""

    actual_backend: str
    accelerator: str
    runs: int
    #: The last one's; each run has its own.
    proof: str
    #: Number of distinct proofs: a proof may contain the path of its run.
    proofs: int


class ProgramFacts(Wire):
    """The program that a cell runs."""

    harness: str
    abi: str
    digest: Digest
    files: int
    size_bytes: int
    #: The part of a run that its clock covers.
    clock_covers: str


class SideView(Wire):
    """One cell with all its runs."""

    cell_id: CellId
    label: str
    variant: str | None
    manifest: Manifest | None
    program: ProgramFacts
    #: The requested backend; `placements` show the actual one.
    backend: str
    placements: tuple[PlacementView, ...]
    #: Complete; and those that are not the harness's defaults.
    settings: dict[str, SettingValue]
    changed_settings: dict[str, SettingValue]
    jobs_by_outcome: dict[str, int]
    runs_by_quality: dict[str, int]
    #: Counts of invalid runs by reason.
    quality_reasons: dict[str, int]
    parser_versions: tuple[int, ...]
    conditions: tuple[ConditionRange, ...]
    #: Runs whose evidence expired, so that their conditions are not known any more.
    runs_without_evidence: int
    runs: tuple[MeasurementView, ...]


class DeviceBuild(Wire):
    """A device as it was for some of the runs: its facts change with its system build."""

    facts: DeviceFacts
    runs: int


class ExplainedDevice(Wire):
    """The device that everything ran on."""

    device_id: DeviceId
    label: str | None
    host: str
    builds: tuple[DeviceBuild, ...]


class RoundView(Wire):
    """A round that counts."""

    round: int
    block: int
    repeat: int
    baseline_ns: float
    candidate_ns: float
    #: Baseline over candidate.
    ratio: float
    #: Between the beginnings of both; None where the device hides its boots, or an older release measured.
    minutes_apart: float | None
    #: Whether the device restarted in between: such a pair is left out. None where that is not known.
    restarted: bool | None
    baseline_job: JobId
    candidate_job: JobId
    baseline_attempt: AttemptId
    candidate_attempt: AttemptId
    #: Their places, from 1, in the order in which the block ran, and how many ran in it.
    baseline_place: int
    candidate_place: int
    block_size: int
    #: What ran on the device before each.
    baseline_order: RunOrder | None
    candidate_order: RunOrder | None


class DisturbedRun(Wire):
    """The newest run of a cell or its baseline that was capped, throttled or swapped out."""

    attempt_id: AttemptId
    label: str
    quality: Quality
    quality_reasons: tuple[str, ...]
    #: What the device sampled of itself during the run; None where it was not sampled, or that expired.
    trace: RunTrace | None


class CellExplanation(Wire):
    """GET /api/v1/cells/{id}/explanation. Without `speedup` the cell is compared to nothing."""

    matrix_id: MatrixId
    matrix: str
    seed: int
    gates: Gates
    margin: float
    noise_limit: float
    device: ExplainedDevice
    speedup: SpeedupView | None
    #: The method of computing the numbers of `speedup`.
    method: tuple[str, ...]
    rounds: tuple[RoundView, ...]
    left_out: tuple[Exclusion, ...]
    #: None where none of its runs was.
    disturbed: DisturbedRun | None
    #: What was seen at each look, oldest first; empty unless the matrix grows until its cells are decided.
    looks: tuple[Look, ...]
    #: The baseline against its duplicate, where the matrix has such pairs.
    aa: SpeedupView | None
    baseline: SideView | None
    candidate: SideView
    #: Cells that are compared to this one.
    compared_to_it: tuple[CellId, ...]


class AttemptSummary(Wire):
    """One try of a job."""

    attempt_id: AttemptId
    state: str
    outcome: Outcome | None
    code: str | None
    message: str | None
    claimed_at: datetime
    finished_at: datetime | None


class JobDetail(JobView):
    """GET /api/v1/jobs/{id}."""

    matrix: str | None
    cell_id: int | None
    created_at: datetime
    finished_at: datetime | None
    attempt_list: tuple[AttemptSummary, ...]
    run: MeasurementView | None


class JobExplanation(Wire):
    """GET /api/v1/jobs/{id}/explanation: one number."""

    job: JobDetail
    gates: Gates | None
    noise_limit: float | None
    device: ExplainedDevice
    #: Its cell, with this job's run alone; None for a health check.
    side: SideView | None
    #: The share of the float32 peak of its cores; None where the peak is not known, and for other precisions.
    peak: PeakShare | None = None
    before: Condition | None
    after: Condition | None
    #: The command as it ran.
    argv: tuple[str, ...]
    pushed_bytes: int | None
    waited_s: float | None
    #: What the device sampled of itself during the run; None where it was not sampled, or that expired.
    trace: RunTrace | None
    place: int | None
    block_size: int | None
    #: Its use in the comparison of its cell, or the reason against; None where nothing is compared.
    use: str | None
    #: Whether it is left out of the comparison of its own cell.
    left_out: bool = False
    #: Cells whose comparisons may use it: its own, or those that are compared to it.
    cells: tuple[CellId, ...]
