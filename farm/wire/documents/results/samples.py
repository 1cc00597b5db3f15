"""Documents about the samples of measurements, packed as the farm stores them."""

from datetime import datetime

from farm.core.base.ids import AttemptId, CellId, DeviceId, JobId, MatrixId
from farm.core.runs.measurement import Quality, SampleKind
from farm.wire.base import Wire
from farm.wire.documents.matrices.cell_setup import CellSetup

#: Cells that one answer lists at most, and bytes of packed samples after which it ends.
MAX_SAMPLED_CELLS = 500
MAX_SAMPLED_BYTES = 8 * 1024 * 1024


class SampledRun(Wire):
    """The accepted measurement of one job, with its samples."""

    attempt_id: AttemptId
    job_id: JobId
    round: int
    block: int
    quality: Quality
    #: `summary`: the tool printed no samples.
    kind: SampleKind
    measured_at: datetime
    #: The median of the samples, of a sustained run of those of its last fifth; or the tool's mean.
    value_ns: float
    sample_count: int
    #: Base64 of: a byte 2, then variable-length integers (low seven bits first): a unit in nanoseconds, and
    #: the zigzag-coded differences of the samples in that unit, in the order they ran; then the CRC-32 of all
    #: that. None of the kind `summary`.
    samples: str | None


class SampledCell(CellSetup):
    """GET /api/v1/matrices/{id}/samples: one cell with the samples of its accepted measurements."""

    matrix_id: MatrixId
    cell_id: CellId
    #: Its place in the matrix, from 0; the last one's is `after` of the next page.
    index: int
    device_id: DeviceId
    device_label: str | None
    device_model: str | None
    soc: str | None
    virtual: bool
    label: str
    #: In the order of rounds.
    runs: tuple[SampledRun, ...]
