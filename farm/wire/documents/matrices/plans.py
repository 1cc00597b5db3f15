"""Documents about planned and cancelled matrices."""

from datetime import datetime
from typing import Any, Literal

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.base.setting_values import SettingValue
from farm.core.matrices.estimate import EstimateBasis
from farm.core.matrices.matrix import RejectionKind
from farm.wire.base import Wire


class CancelRequest(Wire):
    """POST /api/v1/matrices/{id}/cancel: the whole matrix, or what is left of it on one device."""

    #: Its id, its label, or the beginning of either.
    device: str | None = None


class CancellationView(Wire):
    """The result of a cancellation; `queued` and `active` are 0 where everything had finished."""

    matrix_id: MatrixId
    name: str
    #: Jobs that will never start.
    queued: int
    #: Jobs that were under way: their runs are stopped, and count no longer.
    active: int
    #: Jobs that were finished before, and stay as they are.
    finished: int
    #: False: some are left to cancel, and may start until then. The same request goes on with them.
    is_done: bool = True


class RerunRequest(Wire):
    """POST /api/v1/matrices/{id}/rerun: all of it, or cells without a valid measurement in each round."""

    failed: bool = False


class PlannedCell(Wire):
    """A cell that would run."""

    device_id: DeviceId
    device_label: str | None
    label: str
    variant: str | None
    backend: str
    settings: dict[str, SettingValue]
    replica: int
    #: The label of the cell it would be compared to; None for a baseline, and where there is none.
    baseline: str | None
    is_baseline: bool
    #: In one round: a baseline starts once in each of its blocks.
    starts: int
    #: Time one run keeps the device busy.
    estimate_s: float
    basis: EstimateBasis


class PlannedDevice(Wire):
    """The planned work of a device."""

    device_id: DeviceId
    device_label: str | None
    device_model: str
    soc: str | None
    virtual: bool
    cells: int
    jobs: int
    #: Jobs, and time, if each cell gets all rounds that it may have: more where the matrix grows.
    max_jobs: int
    max_device_s: float
    #: Time the device would be busy; an upper bound where cells are estimated by their time-out.
    device_s: float
    cells_by_basis: dict[EstimateBasis, int]
    #: Jobs of others that go first.
    jobs_ahead: int
    #: The reasons that it would get no work now; empty when it would.
    waiting_for: tuple[str, ...]


class ExcludedDevice(Wire):
    """A device that no selector fits, and the key it fails."""

    device_id: DeviceId
    device_label: str | None
    device_model: str
    reason: str


class RejectedGroup(Wire):
    """Cells that would get no jobs for the same reason, on the same devices."""

    rejection: RejectionKind
    reason: str
    hint: str
    labels: tuple[str, ...]
    #: Empty: all devices.
    device_ids: tuple[DeviceId, ...]
    #: The label of each of these, or its id where it has none.
    device_names: tuple[str, ...]


class StandingPlan(Wire):
    """What letting a matrix stand would queue."""

    #: Cells that were never queued at their present versions: they are queued at once, with their baselines.
    missing: int
    #: The first session of its schedule, which measures all cells; None without one.
    next_due_at: datetime | None


class MatrixPlanView(Wire):
    """POST /api/v1/matrices/plan: the plan of a matrix on this farm now. Nothing is queued."""

    name: str
    #: Several are separated by commas.
    harness: str
    #: How often each cell is measured at least, and at most: more where the matrix grows.
    rounds: int
    max_rounds: int
    cells: int
    jobs: int
    max_jobs: int
    #: Absolute: one cell is the baseline of all others. None: nothing is compared.
    baseline_kind: Literal["relative", "absolute"] | None
    #: As the matrix names it.
    baseline: dict[str, Any] | None
    devices: tuple[PlannedDevice, ...]
    left_out: tuple[ExcludedDevice, ...]
    rejected: tuple[RejectedGroup, ...]
    #: Cells that would be measured and compared to nothing, because their baseline cannot run.
    uncompared: tuple[str, ...]
    #: All devices together.
    device_s: float
    max_device_s: float
    #: With devices working in parallel, those that share a CPU in turns; without jobs ahead.
    wall_s: float
    max_wall_s: float
    #: Some cell is estimated by its time-out.
    is_upper_bound: bool
    cell_list: tuple[PlannedCell, ...]
    #: Of a matrix with `schedule` or `skip`, which is let stand.
    standing: StandingPlan | None = None
