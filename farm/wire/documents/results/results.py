"""Documents about measured values: of cells over rounds, of series, of single runs, and parsed again."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, MatrixId, SeriesId
from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Recipe
from farm.core.results.reparse import ReparseChange
from farm.core.results.statistics.sessions import SessionSpread
from farm.core.runs.derived.energy import EnergyReading
from farm.core.runs.derived.generation import Generation
from farm.core.runs.derived.sustained import LatencyProfile
from farm.core.runs.measurement import Better, CellSummary, Metric, Quality, SampleKind
from farm.core.runs.placement import Placement
from farm.wire.base import Count, WholeNumber, Wire
from farm.wire.documents.files.programs import Text
from farm.wire.documents.matrices.cell_setup import CellSetup

#: Cells that one answer lists at most.
MAX_RESULTS_PAGE = 2000


class MetricView(Wire):
    """A further metric, over the same rounds as the time."""

    name: str
    unit: str
    better: Better
    level: CellSummary


class ResultView(CellSetup):
    """GET /api/v1/matrices/{id}/results: one cell over its rounds.

    With any valid round, only valid rounds count; otherwise all do, and `counted` names their quality.
    """

    cell_id: CellId
    #: Its place in the matrix, from 0; the last one's is `after` of the next page.
    index: int
    device_id: DeviceId
    device_label: str | None
    device_model: str | None
    soc: str | None
    virtual: bool
    label: str
    #: The part of a run that the time covers.
    clock_covers: str
    kind: SampleKind | None
    #: Nanoseconds; None while nothing is measured.
    time: CellSummary | None
    #: The medians of earlier matrices of the same cell, file and program: the interval of `time` is of this
    #: session alone. None where cells are compared, and for the first session.
    sessions: SessionSpread | None = None
    #: The shortest iteration over the rounds; None where the harness prints none.
    min_ns: int | None = None
    #: Median over rounds of each round's own 90th percentile; None without samples.
    p90_ns: float | None
    #: Median over rounds of interquartile range over median, or of a tool's own deviation over its mean.
    scatter: float | None
    metrics: tuple[MetricView, ...]
    #: Rounds by quality, repeats left out.
    rounds_by_quality: dict[str, int]
    counted: str | None
    #: Rounds that would count, had the device not been on another build of its system or drivers.
    other_builds: int = 0
    #: The hardware that it ran on, and the proof.
    accelerator: str | None
    proof: str | None


class ReadingView(Wire):
    """The reading of one attempt by its harness adapter."""

    kind: SampleKind
    #: The median of the samples, of a sustained run those of its last fifth; or the tool's mean.
    value_ns: float
    mean_ns: float
    min_ns: int | None
    max_ns: int | None
    p90_ns: float | None
    #: Interquartile range over median, or a tool's own deviation over its mean.
    scatter: float | None
    #: One value an iteration; empty where the tool printed a summary only.
    samples_ns: tuple[int, ...]
    metrics: tuple[Metric, ...]
    #: Of a sustained run with samples: latency over its time.
    profile: LatencyProfile | None = None
    #: Measured and imported energy, each with its method and boundary.
    energy: tuple[EnergyReading, ...] = ()
    actual_backend: str
    accelerator: str
    proof: str
    #: Accelerators that NNAPI listed, whichever of them ran the model.
    offered: tuple[str, ...] = ()
    #: Of a language model: regime, caches, digests of prompt and text.
    generation: Generation | None = None
    variant_digest: Digest | None
    program_digest: Digest
    parser_version: int


class EnergyImport(Wire):
    """POST /api/v1/attempts/{id}/energy: what an instrument outside of the farm measured."""

    #: Of all inferences together.
    joules: Annotated[float, Field(gt=0, le=1e9)]
    #: Of how many the energy is; None: of those that the tool timed.
    inferences: Annotated[int, Field(ge=1, lt=2**53)] | None = None
    #: The time that the energy is of.
    seconds: Annotated[float, Field(gt=0, le=1e8)] | None = None
    #: What the energy is of: the supply of the whole device, a rail, with or without the idle share.
    boundary: Annotated[Text, Field(min_length=1)]
    #: What measured it.
    instrument: Annotated[Text, Field(min_length=1)]
    note: Text = ""


class PlacedSeries(Wire):
    """GET /api/v1/placements: a series with the placement of its newest measurement."""

    series_id: SeriesId
    device_id: DeviceId
    device_label: str | None
    model: str | None
    recipe: Recipe | None
    harness: str
    #: The requested backend.
    backend: str
    #: Those that are not the harness's defaults.
    settings: dict[str, SettingValue]
    #: The actual backend and hardware; `unknown` without a proof.
    actual_backend: str
    accelerator: str
    #: `dsp 136/139, cpu 3`: nodes by hardware, of all.
    words: str
    quality: Quality
    proof: str
    #: None where the CPU is proven by construction, or nothing is.
    placement: Placement | None
    attempt_id: AttemptId
    measured_at: datetime
    #: Accepted measurements, and those of them whose clock was capped.
    runs: int = 0
    capped: int = 0


#: So that a piece is done within seconds, whatever was printed.
MAX_PER_PAGE = 200


class ReparseRequest(Wire):
    """POST /api/v1/reparse: the next piece of the evidence to be read again."""

    matrix_id: Annotated[MatrixId | None, WholeNumber] = None
    harness: Text | None = None
    #: Only what ended then or later.
    since: datetime | None = None
    #: Attempts after this one.
    after: Count = 0
    limit: Annotated[int, Field(ge=1, le=MAX_PER_PAGE)] = 50
    #: Report the changes without applying them.
    dry_run: bool = True


class ReparsePage(Wire):
    """The result of one page."""

    changes: tuple[ReparseChange, ...]
    #: Attempts with evidence that an older version parsed, or none could.
    examined: int
    up_to_date: int
    #: They have lost their evidence by the rules of retention, and stay as they were read.
    expired: int
    #: To be asked for next; None at the end.
    next_after: int | None
