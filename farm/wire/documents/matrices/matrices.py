"""Documents about matrices, behind every listing and `--json`."""

from datetime import datetime
from typing import Any

from pydantic import Field

from farm.core.base.ids import AttemptId, CellId, DeviceId, MatrixId
from farm.core.matrices.matrix import RejectionKind
from farm.wire.base import Wire
from farm.wire.documents.matrices.cell_setup import CellSetup
from farm.wire.documents.results.results import MetricView, ResultView
from farm.wire.documents.results.speedups import GateView, SpeedupView

#: Matrices that one answer lists at most.
MAX_MATRICES_PAGE = 100


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


class MatrixResults(Wire):
    """`farm run --json`, `farm compare --json` and `farm matrix submit --watch --json`: a finished matrix."""

    matrix: MatrixView
    results: tuple[ResultView, ...]
    speedups: tuple[SpeedupView, ...]
    #: With `--gate`.
    gate: GateView | None = None
