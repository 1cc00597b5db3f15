"""Documents about jobs and their attempts."""

from datetime import datetime

from farm.core.base.ids import AttemptId, DeviceId, JobId, MatrixId
from farm.core.jobs.job import JobKind, JobState
from farm.core.jobs.run_order import RunOrder
from farm.core.runs.measurement import Outcome, Quality
from farm.core.runs.trace import RunTrace
from farm.wire.base import Wire
from farm.wire.documents.matrices.cell_setup import AttemptCell
from farm.wire.documents.results.results import ReadingView

#: Jobs that one answer lists at most.
MAX_JOBS_PAGE = 5000


class JobView(Wire):
    """GET /api/v1/jobs?matrix_id=."""

    job_id: JobId
    kind: JobKind
    matrix_id: MatrixId | None
    device_id: DeviceId
    device_label: str | None
    label: str
    round: int
    #: Of its device and round, from 0.
    block: int
    repeat: int
    #: In the planned order of its block, from 1; None: a check, or older than blocks.
    place: int | None
    state: JobState
    outcome: Outcome | None
    code: str | None
    message: str | None
    attempts: tuple[AttemptId, ...]


class AttemptView(Wire):
    """GET /api/v1/attempts/{id}."""

    attempt_id: AttemptId
    job_id: JobId
    device_id: DeviceId
    device_label: str | None
    fence: int
    state: str
    outcome: Outcome | None
    blame: str | None
    code: str | None
    message: str | None
    claimed_at: datetime
    finished_at: datetime | None
    #: None once it was removed, some time after the evidence.
    plan: dict[str, object] | None
    #: Before the run: the condition that delays its start.
    waiting_for: str | None = None
    evidence: dict[str, object] | None
    #: Time the received evidence was deleted, and the rule of retention.
    evidence_expired_at: datetime | None = None
    evidence_expired_by: str | None = None
    quality: Quality | None
    quality_reasons: tuple[str, ...]
    #: What does not lower its quality: why there is no energy, what the device hides.
    notices: tuple[str, ...] = ()
    #: The reading of the harness's adapter; None where there is no evidence, or it cannot be parsed.
    reading: ReadingView | None = None
    #: What the device sampled of itself during the run, parsed; None for a run that was not sampled.
    trace: RunTrace | None = None
    #: What ran on the device before it, and its place in its block; None for a health check.
    order: RunOrder | None = None
    #: What it measured; None for a health check.
    cell: AttemptCell | None = None
