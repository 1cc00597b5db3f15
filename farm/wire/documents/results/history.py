"""Documents about the history of series: points with their versions, and retractions of measurements."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, MatrixId, SeriesId
from farm.core.base.setting_values import SettingValue
from farm.core.devices.controls import ControlLevel
from farm.core.models.variant import Format, PrecisionWord, SlowPath
from farm.core.results.history.recorded_change import ChangeCause, ChangeState
from farm.wire.base import Count, WholeNumber, Wire
from farm.wire.documents.files.programs import Text

#: Series that one answer lists at most.
MAX_HISTORY_PAGE = 100


class VersionPart(StrEnum):
    """What a point can have in another version than the point before it."""

    #: The model file.
    FILE = "file"
    #: The program of the harness.
    PROGRAM = "program"
    #: The model file of the baseline, and the program that ran it.
    BASELINE_FILE = "baseline_file"
    BASELINE_PROGRAM = "baseline_program"
    #: The build of the device's system, its kernel or drivers.
    OS = "os"
    #: The extent of control over the device.
    CONTROLS = "controls"


class HistoryPoint(Wire):
    """What one session, that is a matrix on a device, showed of a series."""

    matrix_id: MatrixId
    #: Whose explanation shows the source of the numbers.
    cell_id: CellId
    #: The times of its first and last measurement.
    began_at: datetime
    ended_at: datetime
    #: Rounds that count, and blocks that are left out.
    rounds: int
    left_out: int
    #: Nanoseconds, geometric means over the rounds that count.
    time_ns: float
    baseline_ns: float | None
    #: Baseline time over time; None for what is compared with nothing.
    speedup: float | None
    #: Its 95 % interval by the rounds of the session alone; None of fewer than five rounds.
    ci_low: float | None
    ci_high: float | None
    #: Natural logarithms, with the standard errors of their means; None of fewer than two rounds.
    log_time: float
    se_time: float | None
    log_speedup: float | None
    se_speedup: float | None
    #: SHA-256 of the model file and of the program, and those of the baseline.
    variant_digest: Digest | None
    program_digest: Digest
    baseline_variant_digest: Digest | None
    baseline_program_digest: Digest | None
    #: Names the system build and drivers: equal ones have equal names.
    os: str | None
    android: str | None
    control_level: ControlLevel
    #: What is another version than at the point before.
    changed: tuple[VersionPart, ...]


class SeriesChange(Wire):
    """A change that the farm found in a series: `farm regressions show ID` has its evidence."""

    change_id: int
    #: The first cell of the new level.
    cell_id: CellId
    cause: ChangeCause
    state: ChangeState
    #: Of all series that show it: the change of the logarithm of time, + is slower, and its standard error.
    delta: float
    se_delta: float
    #: The last session of the old level, and the first of the new one.
    before_at: datetime
    since_at: datetime


class SeriesSetup(Wire):
    """What a series runs at each point. Fields of the model file are empty where it runs none."""

    model: str | None
    #: The name of the model file at the newest point.
    variant: str | None
    precision: PrecisionWord | None
    format: Format | None
    memory_format: str | None
    #: The backend that the model file was built for.
    target: str | None
    #: The requested backend.
    backend: str
    #: The flags that are not the harness's defaults.
    changed_settings: dict[str, SettingValue]
    harness: str


class SeriesHistory(SeriesSetup):
    """GET /api/v1/history: the points of one series against one baseline, oldest first."""

    #: Its number, and that of its baseline; the last one's number is `after` of the next page.
    series_id: SeriesId
    baseline_series_id: SeriesId | None
    device_id: DeviceId
    device_label: str | None
    device_model: str | None
    soc: str | None
    virtual: bool
    #: The labels of the newest point's cell and of its baseline.
    label: str
    baseline: str | None
    #: What the baseline runs; None for what is compared with nothing.
    baseline_setup: SeriesSetup | None
    #: Equal on all devices for the same model, recipe, backend and settings.
    slot: int
    points: tuple[HistoryPoint, ...]
    #: Those that what is measured still shows.
    changes: tuple[SeriesChange, ...] = ()


class GroupBy(StrEnum):
    """What devices of a group have in common."""

    DEVICE_MODEL = "device-model"
    SOC = "soc"
    ANDROID = "android"
    #: All devices are one group.
    ALL = "all"
    #: Each device is a group of its own.
    DEVICE = "device"


class GroupSpeedupView(Wire):
    """GET /api/v1/speedups/groups: one candidate against its baseline over the devices of a group.

    Each device counts once, with its newest session: devices of a group differ by more than rounds do.
    """

    by: GroupBy
    #: The value that the devices have in common; None: they do not report it.
    group: str | None
    virtual: bool
    model: str | None
    harness: str
    baseline: str
    #: Whether the baseline's file is one that phones could run faster, as `unoptimized` of a cell's setup.
    baseline_unoptimized: bool = False
    candidate: str
    #: Of the candidate's file: as of the baseline's, and what it shows of a way of computing that is known to
    #: be slow.
    unoptimized: bool = False
    slow_path: SlowPath | None = None
    baseline_slow_path: SlowPath | None = None
    #: The harness of the baseline.
    baseline_harness: str | None = None
    #: What the clocks of candidate and baseline cover, and over which tokens, and whether that differs: as in
    #: a speedup of one device.
    clock_covers: str | None = None
    baseline_clock_covers: str | None = None
    clocks_differ: bool = False
    tokens: str | None = None
    baseline_tokens: str | None = None
    tokens_differ: bool = False
    #: Devices that have measured both sides, of those of the group that have measured the model.
    devices: int
    of_devices: int
    #: Geometric mean over devices.
    speedup: float
    #: The 95 % interval, Student's t over devices; None of fewer than three. Of one device, by the rounds of
    #: its session alone; None of fewer than five.
    ci_low: float | None
    ci_high: float | None
    #: The lowest and the highest of the devices.
    low: float
    high: float
    #: Geometric means over devices, nanoseconds.
    baseline_ns: float
    candidate_ns: float
    #: The newest measurement that entered.
    measured_until: datetime
    #: Where each device is a group: which one, the cell of its newest session, and the rounds that count.
    device_id: DeviceId | None = None
    cell_id: CellId | None = None
    rounds: int | None = None


class RetractRequest(Wire):
    """POST /api/v1/retractions: withdraw measurements, or take that back, piece by piece."""

    #: One of these three: a matrix, a cell, or a run.
    matrix_id: Annotated[MatrixId | None, WholeNumber] = None
    cell_id: Annotated[CellId | None, WholeNumber] = None
    attempt_id: Annotated[AttemptId | None, WholeNumber] = None
    #: Of a matrix, only on this device: its id, its label, or the beginning of either.
    device: Text | None = None
    reason: Annotated[Text, Field(min_length=1)]
    #: Count again what was retracted.
    undo: bool = False


class RetractPage(Wire):
    """What one request retracted, or counts again; ask until there is no more."""

    measurements: Count
    has_more: bool
