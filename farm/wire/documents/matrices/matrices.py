"""Documents about matrices and their jobs, behind every listing and `--json`."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, field_validator

from farm.core.base.ids import AttemptId, CellId, DeviceId, JobId, MatrixId, is_digest
from farm.core.jobs.job import JobKind, JobState
from farm.core.jobs.run_order import RunOrder
from farm.core.matrices.matrix import RejectionKind
from farm.core.models.variant import (
    MOST_INPUTS,
    NAME_RULE,
    Manifest,
    SlowPath,
    TensorSpec,
    find_invalid_name,
)
from farm.core.results.looks.basis import IntervalBasis
from farm.core.results.metric_comparison import MetricComparison
from farm.core.results.speedup import ExclusionCount
from farm.core.results.statistics.families import AlarmShare
from farm.core.results.statistics.gate import GateOutcome
from farm.core.results.statistics.pair_distance import PairDistance
from farm.core.runs.measurement import Outcome, Quality, Verdict
from farm.core.runs.trace import RunTrace
from farm.wire.base import Wire
from farm.wire.documents.matrices.cell_setup import AttemptCell, CellSetup
from farm.wire.documents.results.results import MetricView, ReadingView, ResultView

#: Matrices that one answer lists at most.
MAX_MATRICES_PAGE = 100
#: Jobs that one answer lists at most.
MAX_JOBS_PAGE = 5000
#: Comparisons that one answer lists at most.
MAX_SPEEDUPS_PAGE = 2000


class FarmView(Wire):
    """GET /api/v1/farm: the identity of the farm."""

    version: str
    wire_version: int
    started_at: datetime
    data_dir: str
    #: URL for agents on other machines; None when the farm serves none.
    agents_url: str | None = None


class VariantChange(Wire):
    """POST /api/v1/variants/{id}/manifest: what its file states is read again, too."""

    #: The network's other name, as long as no matrix runs the variant.
    model: str | None = None
    #: Declared inputs: they complete those of the file, or are in place of those that it does not state.
    inputs: Annotated[tuple[TensorSpec, ...], Field(max_length=MOST_INPUTS)] = ()


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
    """POST /api/v1/matrices: the matrix as in its YAML, not yet checked."""

    spec: dict[str, Any]


class DeviceProgress(Wire):
    """The progress of a matrix on one device."""

    device_id: DeviceId
    device_label: str | None
    total: int
    #: Jobs that have ended, those that were cancelled among them.
    finished: int
    cancelled: int = 0
    #: Jobs if each undecided cell gets all rounds that it may have; `total` unless the matrix grows.
    max_total: int
    #: The cell that runs there now.
    current: str | None
    #: The reasons that nothing runs there; empty while something does.
    waiting_for: tuple[str, ...]
    #: Seconds until its last job ends; None while its pace is not known, or it waits for a person.
    eta_s: float | None = None
    max_eta_s: float | None = None


class MatrixSummary(Wire):
    """GET /api/v1/matrices: one line each."""

    matrix_id: MatrixId
    name: str
    state: str
    #: How often each cell is measured; of a matrix that grows, at least.
    rounds: int
    #: How often it may be measured at most: more than `rounds` where the matrix grows.
    max_rounds: int
    cells: int
    rejected: int
    jobs: int
    #: Jobs by state or, when finished, by outcome.
    jobs_by_outcome: dict[str, int]
    #: Of the queued jobs, those that cannot run yet: the farm still expands a large matrix.
    not_queued: int = 0
    created_at: datetime
    finished_at: datetime | None
    #: The matrix that this one runs again.
    rerun_of: MatrixId | None = None
    #: None where it was not recorded: older releases did not.
    submitted_by: str | None = None
    #: Seconds until the last job ends, from the pace so far; None until two have ended on a device. Of a
    #: matrix that grows, without rounds that are not added yet.
    eta_s: float | None = None
    #: The same if each undecided cell gets all rounds that it may have.
    max_eta_s: float | None = None
    #: Devices that `eta_s` leaves out: they wait for a person, or their pace is not known.
    without_eta: tuple[DeviceId, ...] = ()
    #: The label of each of these, or its id where it has none.
    without_eta_names: tuple[str, ...] = ()


class Rejection(Wire):
    """A cell that gets no jobs, with the reason."""

    #: Its place among them, from 0.
    index: int = 0
    device_id: DeviceId | None
    device_label: str | None
    label: str
    kind: RejectionKind
    reason: str


class CellView(CellSetup):
    """One cell of a matrix with its results."""

    cell_id: CellId
    #: Its place in the matrix, from 0.
    index: int = 0
    device_id: DeviceId
    device_label: str | None
    label: str
    replica: int
    baseline: str | None
    jobs: int
    jobs_by_outcome: dict[str, int]
    #: Accepted measurements by quality.
    measurements_by_quality: dict[str, int]
    #: Median over rounds of the valid measurements' values.
    value_ns: float | None
    #: The metrics that the matrix names, over the same rounds.
    metrics: tuple[MetricView, ...]
    #: Counts by distinct problem.
    problems: dict[str, int]
    #: The last attempt with each problem; a job that was not tried has none.
    attempt_by_problem: dict[str, AttemptId] = Field(default_factory=dict)


class MatrixView(MatrixSummary):
    """GET /api/v1/matrices/{id}."""

    #: Several are separated by commas.
    harness: str
    #: Blocks that were measured again because a measurement was not valid.
    repeated_blocks: int
    #: The metrics besides the time that the matrix names, in their order.
    metrics: tuple[str, ...]
    #: Seconds that each run works back to back; times are steady ones then. None for runs of usual length.
    sustained_s: int | None = None
    progress: tuple[DeviceProgress, ...]
    #: The first ones; for a large matrix `GET /api/v1/matrices/{id}/cells?after=INDEX` returns the others.
    cell_list: tuple[CellView, ...]
    #: The first ones, likewise: `GET /api/v1/matrices/{id}/rejected?after=INDEX`. Cells that want a file are
    #: before all others.
    rejected_list: tuple[Rejection, ...]


class SpeedupView(CellSetup):
    """GET /api/v1/speedups: one candidate against its baseline on one device.

    What is run (model, precision, flags, digests, ...) is the candidate's; `baseline_setup` is the same of
    the baseline.
    """

    matrix_id: MatrixId
    #: The candidate's cell, whose explanation shows the source of the numbers; and its baseline's.
    cell_id: CellId
    baseline_cell_id: CellId
    device_id: DeviceId
    device_label: str | None
    device_model: str | None
    soc: str | None
    #: The labels of the two cells.
    baseline: str
    candidate: str
    baseline_setup: CellSetup
    #: What the clocks of candidate and baseline cover; None where both are of one harness. They differ, too,
    #: where a definition does not say the same.
    clock_covers: str | None = None
    baseline_clock_covers: str | None = None
    clocks_differ: bool = False
    #: The tokens of candidate and baseline, of language models; None unless they differ, or may: two tools
    #: can make different numbers of them of one text.
    tokens: str | None = None
    baseline_tokens: str | None = None
    tokens_differ: bool = False
    #: Baseline time over candidate time, geometric mean over rounds.
    speedup: float | None
    #: The confidence interval of the speedup: 95 % over all looks together.
    ci_low: float | None
    ci_high: float | None
    #: The rule of the interval, and the looks that were had.
    interval: IntervalBasis
    #: Rounds that entered; one pair in each, but of an A/A pair one in each block; blocks left out.
    rounds: int
    pairs: int
    excluded: int
    #: The reasons why rounds are left out, and of which side they are.
    left_out: tuple[ExclusionCount, ...]
    #: The speedup over all rounds in which both sides were timed, those that are left out among them; and
    #: whether it differs from `speedup` by more than half of the interval's width.
    speedup_of_all: float | None
    selection_matters: bool
    #: The minutes between the beginnings of both sides, over the rounds that entered; None where the device
    #: hides its boots, or an older release measured.
    distance: PairDistance | None
    #: What `verdict` is judged against, as a fraction.
    margin: float
    verdict: Verdict
    #: The reason of the verdict, where it needs one.
    reason: str | None
    #: Nanoseconds, geometric means over the rounds that entered.
    baseline_ns: float | None
    candidate_ns: float | None
    #: Candidate minus baseline: negative when the candidate is faster.
    difference_ns: float | None
    #: The shortest iterations over the rounds that entered; None where the harness prints none.
    baseline_min_ns: float | None
    candidate_min_ns: float | None
    #: The smallest true difference so many rounds would probably show, as a fraction: by the past variance of
    #: the pair where it is known, and never less than the margin.
    detectable: float | None
    #: The chance of a speedup at least so far from 1 where there is no difference.
    p_value: float | None
    #: Whether the interval rules out that the candidate is slower by more than the margin.
    not_slower: bool | None
    #: Earlier matrices whose variance of this pair moderates the interval.
    moderated_by: int
    #: The standard error of the logarithm of the speedup, and its degrees of freedom; None without an
    #: interval, and of a farm of an earlier release.
    log_error: float | None = None
    degrees: float | None = None
    #: The matrices whose rounds entered, the newest first: each was one look at the same question.
    matrices: tuple[MatrixId, ...]
    #: True for a duplicate of the baseline: its verdict shows how far the other rows can be trusted.
    aa: bool
    #: Of an A/A pair: how many of such pairs of the device had an interval that left out 1, in its last 50
    #: matrices with one.
    aa_alarms: AlarmShare | None
    virtual: bool
    #: The metrics besides the time that the matrix names.
    metrics: tuple[MetricComparison, ...]
    measured_until: datetime

    @property
    def baseline_harness(self) -> str:
        """Return the harness of the baseline."""
        return self.baseline_setup.harness

    @property
    def baseline_unoptimized(self) -> bool:
        """Return whether the baseline's file is one that phones could run faster."""
        return self.baseline_setup.unoptimized

    @property
    def baseline_slow_path(self) -> SlowPath | None:
        """Return what the baseline's file shows of a way of computing that is known to be slow."""
        return self.baseline_setup.slow_path


class GateRowView(Wire):
    """What a gate says of one comparison."""

    cell_id: CellId
    device_id: DeviceId
    device_label: str | None
    baseline: str
    candidate: str
    outcome: GateOutcome
    #: Baseline time over candidate time, and its interval.
    speedup: float | None
    ci_low: float | None
    ci_high: float | None
    rounds: int
    #: Rounds that would probably decide it; 0 where none would or need, None for more than 1000.
    further_rounds: int | None
    #: Why a side was not measured, as the matrix says; None where it does not.
    problem: str | None = None


class GateView(Wire):
    """What `--gate not-slower` says of a matrix; the exit code is that of its outcome."""

    matrix_id: MatrixId | None
    outcome: GateOutcome
    #: By how much a candidate may be slower, as a fraction.
    margin: float
    #: Cells that are passed or slower, and cells that the matrix asks for, those that cannot run among them.
    answered: int
    asked: int
    #: Cells that cannot run, other than those that the matrix excludes: with any, nothing passes.
    not_run: int = 0
    #: Rounds that would probably decide all that are undecided; None for more than 1000.
    further_rounds: int | None
    rows: tuple[GateRowView, ...]


class MatrixResults(Wire):
    """`farm run --json`, `farm compare --json` and `farm matrix submit --watch --json`: a finished matrix."""

    matrix: MatrixView
    results: tuple[ResultView, ...]
    speedups: tuple[SpeedupView, ...]
    #: With `--gate`.
    gate: GateView | None = None


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
