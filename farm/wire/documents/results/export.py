"""Rows of `farm export`: one for each measurement, list of samples, look at a device, speedup or device.

The `#:` comments are the column descriptions of docs/export.md. Names end with units; a value that is not
known is null; a column of JSON holds it as text.
"""

import json
import math
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, FactsId, JobId, MatrixId, SeriesId
from farm.wire.base import Count, Wire
from farm.wire.documents.devices import DeviceView
from farm.wire.documents.matrices.cell_setup import CellSetup
from farm.wire.documents.results.speedups import SpeedupView

#: Measurements whose files are written together: those of numbers from a multiple of this one on.
EXPORT_BLOCK = 20_000
#: Rows of one answer.
MAX_EXPORT_PAGE = 2000
#: Measurements of one answer with conditions, whose reports are parsed for it.
MAX_CONDITIONS_PAGE = 100

JsonText = Annotated[str, Field(json_schema_extra={"contentMediaType": "application/json"})]
#: `before` and `after` the run by the agent, `during` it by the device itself.
Moment = Literal["before", "during", "after"]


class MeasurementRow(Wire):
    """A measurement that counts: one process start on a device, of any quality."""

    measurement_id: int
    matrix_id: MatrixId
    #: A cell is a variant, backend and settings on a device; it is measured once in each round.
    cell_id: CellId
    #: The place of the cell in the matrix, from 0, and that of the cell that it is compared with.
    cell_index: int
    baseline_index: int | None
    #: Above 1 for a duplicate of a baseline (A/A).
    replica: int
    #: The label of the cell in tables.
    label: str
    job_id: JobId
    attempt_id: AttemptId
    #: A cell's series goes on in other matrices: the same model, recipe, backend, settings and device.
    series_id: SeriesId
    device_id: DeviceId
    #: The operator's name for the device, when it was exported.
    device_label: str | None
    #: The device as it was for this run: model, SoC, release and build of Android.
    device_model: str | None
    soc: str | None
    android: str | None
    build_fingerprint: str | None
    #: Its times are those of a PC's CPU.
    virtual: bool
    facts_id: FactsId | None
    model: str | None
    #: The name of the model file, as in `farm variant list`.
    variant: str | None
    precision: str | None
    format: str | None
    memory_format: str | None
    #: The backend that the model file was built for.
    target: str | None
    #: SHA-256 of the model file.
    variant_digest: Digest | None
    #: The requested backend.
    backend: str
    #: The settings that are not the harness's defaults.
    settings: JsonText
    harness: str
    #: SHA-256 over the program's files, environment, command and definition.
    program_digest: Digest
    round: int
    #: Of its device and round, from 0: the measurements that are paired with each other.
    block: int
    #: The number of earlier repeats of the block.
    repeat: int
    #: Only `valid` and `noisy` ones enter a speedup.
    quality: str
    quality_reasons: list[str]
    #: `samples`: the value is the median of single iterations; `summary`: it is the tool's own mean.
    kind: str
    sample_count: int
    value_ns: float
    mean_ns: float
    min_ns: int | None
    max_ns: int | None
    p90_ns: float | None
    #: Interquartile range over median of the samples, or a tool's standard deviation over its mean.
    scatter: float | None
    #: The least difference between two of its times; 0 where that does not matter.
    clock_step_ns: int
    #: The backend and hardware that ran, and the line or fact that shows it.
    actual_backend: str
    accelerator: str
    proof: str
    #: Further numbers of the tool: a list of `name`, `value`, `unit`, `better`.
    metrics: JsonText
    #: 0: only the screen was controlled; 1: bound to cores; 2: clocks were fixed.
    control_level: int
    #: The CPU time of the process, and how long it ran, by the device's clock.
    cpu_s: float | None
    duration_s: float | None
    #: Temperatures right before the run.
    start_skin_c: float | None
    start_battery_c: float | None
    #: The device's own time: which boot it was, and its uptime right before the run.
    boot_id: str | None
    start_uptime_s: float | None
    #: Energy that was measured or imported, one entry for each method.
    energy: JsonText | None
    parser_version: int
    #: The person who withdrew it; its quality is then `withdrawn`, and the reason is among its reasons.
    retracted_by: str | None
    measured_at: datetime


class SampleRow(Wire):
    """The single iterations of one measurement; a tool that prints none gives an empty list."""

    measurement_id: int
    cell_id: CellId
    device_id: DeviceId
    #: In the order in which they ran.
    samples_ns: list[int]
    measured_at: datetime


class ConditionRow(Wire):
    """One look at a device around a run; nothing is left of a run whose report has expired."""

    measurement_id: int
    attempt_id: AttemptId
    device_id: DeviceId
    moment: Moment
    #: The device's clock, /proc/uptime; it starts again with each boot.
    uptime_s: float | None
    #: Android's thermal status, 0 (none) to 6 (shutdown); not sampled during runs.
    thermal_status: int | None
    skin_c: float | None
    battery_c: float | None
    battery_level_pct: float | None
    #: Current into the battery: negative while the device runs on it.
    battery_a: float | None
    battery_v: float | None
    #: Power source, or during the run the state of the charger.
    power: str | None
    screen_on: bool | None
    load_1m: float | None
    memory_available_bytes: int | None
    #: Memory of the measured processes; during runs only.
    rss_bytes: int | None
    #: The ceiling in force and the present clock of each cpufreq policy, in the order of the policies.
    cpu_limit_hz: list[int | None]
    cpu_clock_hz: list[int | None]
    gpu_limit_hz: int | None
    gpu_clock_hz: int | None
    #: Degrees Celsius by sensor.
    temperatures_c: JsonText
    #: How far each cooling device limits its hardware; 0 is not at all.
    cooling: JsonText
    measured_at: datetime


class SpeedupRow(Wire):
    """A candidate against its baseline on one device, as `farm speedups MATRIX --json` has it."""

    matrix_id: MatrixId
    cell_id: CellId
    baseline_cell_id: CellId
    device_id: DeviceId
    device_label: str | None
    device_model: str | None
    soc: str | None
    virtual: bool
    #: The labels of the two cells.
    baseline: str
    candidate: str
    #: Of the candidate, and of the baseline: the model file, the requested backend, and the settings that are
    #: not the harness's defaults.
    model: str | None
    precision: str | None
    format: str | None
    memory_format: str | None
    target: str | None
    variant_digest: Digest | None
    backend: str
    settings: JsonText
    baseline_model: str | None
    baseline_precision: str | None
    baseline_format: str | None
    baseline_memory_format: str | None
    baseline_target: str | None
    baseline_variant_digest: Digest | None
    baseline_backend: str
    baseline_settings: JsonText
    harness: str
    program_digest: Digest
    #: Baseline time over candidate time, geometric mean over rounds: above 1, the candidate is faster.
    speedup: float | None
    #: The confidence interval of the speedup: 95 % over all looks together.
    ci_low: float | None
    ci_high: float | None
    #: The natural logarithm of the speedup, its standard error, and the degrees of freedom of that.
    log_ratio: float | None
    log_error: float | None
    degrees: float | None
    #: The rule of the interval, and its confidence.
    interval: str
    confidence: float | None
    #: Rounds that entered; one pair in each, but of an A/A pair one in each block; blocks left out.
    rounds: int
    pairs: int
    excluded: int
    #: What `verdict` is judged against, as a fraction.
    margin: float
    verdict: str
    reason: str | None
    #: Geometric means over the rounds that entered.
    baseline_ns: float | None
    candidate_ns: float | None
    difference_ns: float | None
    #: The smallest true difference so many rounds would probably show, as a fraction.
    detectable: float | None
    #: The chance of a speedup at least so far from 1 where there is no difference.
    p_value: float | None
    not_slower: bool | None
    #: The speedup with the rounds that are left out; whether it differs by more than half of the interval.
    speedup_of_all: float | None
    selection_matters: bool
    #: Earlier matrices whose variance of this pair moderates the interval.
    moderated_by: int
    #: True for a duplicate of the baseline: its verdict shows how far the other rows can be trusted.
    aa: bool
    measured_until: datetime

    @classmethod
    def of_view(cls, view: SpeedupView) -> Self:
        """Return the row of a speedup."""
        own, its = _setup_columns(view), _setup_columns(view.baseline_setup)
        return cls.of(
            view,
            **own,
            **{f"baseline_{name}": value for name, value in its.items()},
            log_ratio=math.log(view.speedup) if view.speedup else None,
            interval=str(view.interval.kind),
            confidence=view.interval.confidence,
        )


def _setup_columns(setup: CellSetup) -> dict[str, object]:
    names = ("model", "precision", "format", "memory_format", "target", "variant_digest", "backend")
    return {name: getattr(setup, name) for name in names} | {"settings": json_text(setup.changed_settings)}


class DeviceRow(Wire):
    """A device as it is when it is exported."""

    device_id: DeviceId
    label: str | None
    tags: list[str]
    #: Its number among the devices of its model, from 1.
    unit: int | None
    serial: str
    host: str
    device_model: str | None
    manufacturer: str | None
    soc: str | None
    android: str | None
    api_level: int | None
    abi: str | None
    build_fingerprint: str | None
    virtual: bool
    presence: str
    health: str
    admin: str
    seen_at: datetime

    @classmethod
    def of_view(cls, view: DeviceView) -> Self:
        """Return the row of a device."""
        return cls.of(view, tags=list(view.tags))


class MeasurementPage(Wire):
    """GET /api/v1/export/measurements: the next measurements that count."""

    rows: list[MeasurementRow]
    #: `after` of the next page; None at the end.
    next_after: Count | None


class SamplePage(Wire):
    """GET /api/v1/export/samples: the samples of the next measurements that count."""

    rows: list[SampleRow]
    #: `after` of the next page; None at the end.
    next_after: Count | None


class ConditionPage(Wire):
    """GET /api/v1/export/conditions: the looks at devices around the runs of the next measurements."""

    rows: list[ConditionRow]
    #: `after` of the next page; None at the end.
    next_after: Count | None


class ExportChanges(Wire):
    """GET /api/v1/export/changes: what a file of an earlier export does not have."""

    #: The history of the database: another one after a restore.
    epoch: str
    #: To be given as `since` and `after` of the next question.
    as_of: datetime
    measurement_id: Count
    #: Measurements of a block: those of numbers from a multiple of this one on.
    block: Count
    #: Blocks of measurements that were parsed again, retracted, or given energy since.
    blocks: tuple[int, ...]
    #: Matrices whose speedups may differ: their own measurements are new or changed, or those of an earlier
    #: matrix whose variance moderates them.
    matrices: tuple[MatrixId, ...]


def json_text(value: object) -> str:
    """Return a value as a column of JSON has it."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
