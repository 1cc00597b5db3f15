"""Documents about a number that is measured again as it was made."""

from datetime import datetime

from farm.core.base.ids import AttemptId, CellId, DeviceId, MatrixId
from farm.core.devices.controls import ControlLevel
from farm.core.runs.measurement import CellSummary
from farm.wire.base import Wire
from farm.wire.documents.matrices.matrices import MatrixResults
from farm.wire.documents.results.speedups import SpeedupView


class RerunDifference(Wire):
    """Something that is no longer what it was when a number was measured."""

    #: `file`, `program`, `definition`, `parser`, `build`, `kernel`, `GPU driver`, `root`, `device`, ...
    part: str
    before: str
    now: str
    #: Whether the rerun uses what was used before; else it uses what is there now.
    uses_before: bool


class RerunPlan(Wire):
    """GET /api/v1/attempts/{id}/rerun: how a number is measured again, and what is no longer the same."""

    attempt_id: AttemptId
    matrix_id: MatrixId
    matrix: str
    cell_id: CellId
    device_id: DeviceId
    device_label: str | None
    harness: str
    #: The labels of the cell, and of the cell that it is compared with; None where it is compared with none.
    label: str
    baseline: str | None
    #: Rounds and jobs of the rerun; more of both where it grows until the cell is decided.
    rounds: int
    max_rounds: int
    jobs: int
    max_jobs: int
    #: The comparison that the attempt was part of, and the time of its cell; None where nothing counts.
    speedup: SpeedupView | None
    time: CellSummary | None
    #: How much of the device was controlled; None of an attempt without a measurement.
    control_level: ControlLevel | None
    measured_at: datetime | None
    differences: tuple[RerunDifference, ...]


class RerunResult(Wire):
    """`farm rerun ATTEMPT --json`: what it was, and the matrix that measured it again."""

    plan: RerunPlan
    again: MatrixResults
    #: Whether the intervals of both have something in common; None without one of them.
    agrees: bool | None
