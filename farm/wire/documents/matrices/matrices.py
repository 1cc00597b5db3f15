"""Documents about matrices and their jobs, behind every listing and `--json`."""

from datetime import datetime
from typing import Any

from pydantic import field_validator

from farm.core.base.ids import AttemptId, CellId, DeviceId, JobId, MatrixId, VariantId, is_digest
from farm.core.base.setting_values import SettingValue
from farm.core.jobs.job import JobKind, JobState
from farm.core.models.variant import NAME_RULE, Manifest, find_invalid_name
from farm.core.runs.measurement import Outcome, Quality
from farm.core.runs.verdict import Verdict
from farm.wire.base import Wire
from farm.wire.documents.results.readings import ReadingView

#: Jobs that one answer lists at most.
MAX_JOBS_PAGE = 5000


class FarmView(Wire):
    """GET /api/v1/farm: who answers here."""

    version: str
    wire_version: int
    started_at: datetime
    data_dir: str
    #: Where agents on other machines call; None when the farm serves none.
    agents_url: str | None = None


class VariantView(Wire):
    """GET /api/v1/variants."""

    variant_id: VariantId
    name: str
    manifest: Manifest
    created_at: datetime
    #: Since when the farm has its file no more.
    expired_at: datetime | None = None


class VariantRegistration(Wire):
    """POST /api/v1/variants: the file itself goes to PUT /api/v1/blobs/{digest} first."""

    manifest: Manifest

    @field_validator("manifest")
    @classmethod
    def _is_named_as_matrices_can(cls, manifest: Manifest) -> Manifest:
        if (word := find_invalid_name(manifest)) is not None:
            raise ValueError(f"{word[:80]!r} is no name: {NAME_RULE}")
        if not manifest.backends:
            raise ValueError("a variant runs on one backend at least")
        if not is_digest(manifest.recipe_digest):
            raise ValueError("recipe_digest is no digest")
        return manifest


class MatrixSubmission(Wire):
    """POST /api/v1/matrices: the matrix as its YAML says, not yet checked."""

    spec: dict[str, Any]


class DeviceProgress(Wire):
    """The progress of a matrix on one device."""

    device_id: DeviceId
    total: int
    finished: int
    #: What is running there now.
    current: str | None
    #: Why nothing is running there, when nothing is.
    waiting_for: tuple[str, ...]
    #: Seconds until its last job ends; None while its pace is not known, or it waits for a person.
    eta_s: float | None = None


class MatrixSummary(Wire):
    """GET /api/v1/matrices: one line each."""

    matrix_id: MatrixId
    name: str
    state: str
    rounds: int
    cells: int
    rejected: int
    jobs: int
    #: Jobs by state or, when finished, by outcome.
    jobs_by_outcome: dict[str, int]
    #: Of those that are queued, so many take no part yet: the farm is still writing a large matrix down.
    not_queued: int = 0
    created_at: datetime
    finished_at: datetime | None
    #: The matrix that this one runs again.
    rerun_of: MatrixId | None = None
    #: None where nobody noted it: an older release did not.
    submitted_by: str | None = None
    #: Seconds until the last job ends, from the pace so far; None until two have ended on a device.
    eta_s: float | None = None
    #: Devices that `eta_s` leaves out: they wait for a person, or nobody knows their pace.
    without_eta: tuple[DeviceId, ...] = ()


class RejectedCellView(Wire):
    """A cell that gets no jobs, and why."""

    #: Its place among them, from 0.
    index: int = 0
    device_id: DeviceId | None
    label: str
    reason: str


class CellView(Wire):
    """One cell of a matrix with what came of it."""

    cell_id: CellId
    #: Its place in the matrix, from 0.
    index: int = 0
    device_id: DeviceId
    label: str
    variant: str | None
    backend: str
    settings: dict[str, SettingValue]
    replica: int
    baseline: str | None
    jobs: int
    jobs_by_outcome: dict[str, int]
    #: Accepted measurements by quality.
    measurements_by_quality: dict[str, int]
    #: Median over rounds of the valid measurements' values.
    value_ns: float | None
    #: What went wrong, once each, with how often.
    problems: dict[str, int]


class MatrixView(MatrixSummary):
    """GET /api/v1/matrices/{id}."""

    harness: str
    progress: tuple[DeviceProgress, ...]
    #: The first ones; of a large matrix `GET /api/v1/matrices/{id}/cells?after=INDEX` tells of the others.
    cell_list: tuple[CellView, ...]
    #: The first ones, likewise: `GET /api/v1/matrices/{id}/rejected?after=INDEX`.
    rejected_list: tuple[RejectedCellView, ...]


class SpeedupView(Wire):
    """GET /api/v1/speedups: one candidate against its baseline on one device."""

    matrix_id: MatrixId
    #: The candidate's cell, by which one asks what the figures rest on; and its baseline's.
    cell_id: CellId
    baseline_cell_id: CellId
    device: DeviceId
    device_model: str | None
    soc: str | None
    #: None where the harness runs no model.
    model: str | None
    harness: str
    baseline: str
    candidate: str
    #: The candidate's flags that are not the harness's defaults.
    settings: dict[str, SettingValue]
    #: Baseline time over candidate time, geometric mean over rounds.
    speedup: float | None
    ci_low: float | None
    ci_high: float | None
    #: Rounds that entered; rounds left out.
    rounds: int
    excluded: int
    verdict: Verdict
    #: Why the verdict is what it is, where that needs saying.
    reason: str | None
    baseline_ns: float | None
    candidate_ns: float | None
    #: Candidate minus baseline: negative when the candidate is quicker.
    difference_ns: float | None
    #: The smallest true difference these rounds would probably have shown, as a fraction.
    detectable: float | None
    #: True for a twin of the baseline: its verdict says how far the other rows can be trusted.
    aa: bool
    virtual: bool
    measured_until: datetime


class AttemptView(Wire):
    """GET /api/v1/attempts/{id}."""

    attempt_id: AttemptId
    job_id: JobId
    device_id: DeviceId
    fence: int
    state: str
    outcome: Outcome | None
    blame: str | None
    code: str | None
    message: str | None
    claimed_at: datetime
    finished_at: datetime | None
    plan: dict[str, object]
    #: Before the run: what its agent waits for.
    waiting_for: str | None = None
    evidence: dict[str, object] | None
    #: Since when the evidence that came is gone, and by which rule of retention.
    evidence_expired_at: datetime | None = None
    evidence_expired_by: str | None = None
    quality: Quality | None
    quality_reasons: tuple[str, ...]
    #: What the harness's adapter read; None where there is nothing to read, or it could not.
    reading: ReadingView | None = None


class JobView(Wire):
    """GET /api/v1/jobs?matrix_id=."""

    job_id: JobId
    kind: JobKind
    matrix_id: MatrixId | None
    device_id: DeviceId
    label: str
    round: int
    repeat: int
    state: JobState
    outcome: Outcome | None
    code: str | None
    message: str | None
    attempts: tuple[AttemptId, ...]
