"""Documents about the values of a matrix, cell by cell."""

from farm.core.base.ids import CellId, DeviceId
from farm.core.runs.measurement import Better, SampleKind
from farm.wire.base import Wire

#: Cells that one answer lists at most.
MAX_RESULTS_PAGE = 2000


class CellSummaryView(Wire):
    """Values over rounds; the interval is there from five rounds on."""

    rounds: int
    median: float
    low: float
    high: float
    ci_low: float | None
    ci_high: float | None


class MetricView(Wire):
    """A further figure, over the same rounds as the time."""

    name: str
    unit: str
    better: Better
    level: CellSummaryView


class ResultView(Wire):
    """GET /api/v1/matrices/{id}/results: one cell over its rounds.

    Where any round is valid, only those count; where none is, all do, and `counted` says what they are.
    """

    cell_id: CellId
    #: Its place in the matrix, from 0: by the last one's, one asks for the next page.
    index: int
    device_id: DeviceId
    device_model: str | None
    soc: str | None
    virtual: bool
    label: str
    backend: str
    #: What the time is the time of.
    clock_covers: str
    kind: SampleKind | None
    #: Nanoseconds; None while nothing is measured.
    time: CellSummaryView | None
    #: Median over rounds of each round's own 90th percentile, and of its scatter; None without samples.
    p90_ns: float | None
    scatter: float | None
    metrics: tuple[MetricView, ...]
    #: Rounds by quality, repeats left out.
    rounds_by_quality: dict[str, int]
    counted: str | None
    #: Rounds that would count, had the phone not been on another build of its system or drivers.
    other_builds: int = 0
    #: What the work ran on, and what shows it.
    accelerator: str | None
    proof: str | None
