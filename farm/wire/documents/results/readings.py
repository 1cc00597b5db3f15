"""Documents about the reading of one run."""

from farm.core.base.ids import Digest
from farm.core.runs.measurement import Metric, SampleKind
from farm.wire.base import Wire


class ReadingView(Wire):
    """The reading of one attempt by its harness adapter."""

    kind: SampleKind
    #: The median of the samples, or the tool's mean.
    value_ns: float
    mean_ns: float
    min_ns: int | None
    max_ns: int | None
    p90_ns: float | None
    #: Interquartile range over median.
    scatter: float | None
    #: One value an iteration; empty where the tool printed a summary only.
    samples_ns: tuple[int, ...]
    metrics: tuple[Metric, ...]
    actual_backend: str
    accelerator: str
    proof: str
    #: Accelerators that NNAPI named as there, whoever took the model.
    offered: tuple[str, ...] = ()
    variant_digest: Digest | None
    program_digest: Digest
    parser_version: int
