"""Details of one reading, samples included."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, Digest
from farm.core.runs.measurement import Better, Metric, Quality, SampleKind
from farm.core.runs.samples import decode_samples
from farm.database.tables import measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReading:
    """A stored reading with its assessment."""

    quality: Quality
    quality_reasons: Sequence[str]
    actual_backend: str
    accelerator: str
    proof: str
    #: Accelerators that NNAPI listed.
    offered: tuple[str, ...]
    kind: SampleKind
    #: The median of the samples, or the tool's mean.
    value_ns: float
    mean_ns: float
    min_ns: int | None
    max_ns: int | None
    p90_ns: float | None
    scatter: float | None
    #: One value per iteration; empty if the tool printed a summary only.
    samples_ns: tuple[int, ...]
    metrics: tuple[Metric, ...]
    variant_digest: Digest | None
    program_digest: Digest
    parser_version: int


def find_reading(connection: Connection, attempt_id: AttemptId) -> StoredReading | None:
    """Return the reading of an attempt: the accepted one, else the latest stored one, or None."""
    row = connection.execute(
        sa.select(measurements)
        .where(measurements.c.attempt_id == attempt_id)
        .order_by(measurements.c.accepted.desc(), measurements.c.measurement_id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    return StoredReading(
        quality=Quality(row.quality),
        quality_reasons=row.quality_reasons,
        actual_backend=row.actual_backend,
        accelerator=row.accelerator,
        proof=row.proof,
        offered=tuple((row.placement or {}).get("offered", ())),
        kind=SampleKind(row.kind),
        value_ns=row.value_ns,
        mean_ns=row.mean_ns,
        min_ns=row.min_ns,
        max_ns=row.max_ns,
        p90_ns=row.p90_ns,
        scatter=row.scatter,
        samples_ns=() if row.samples is None else decode_samples(row.samples),
        metrics=tuple(Metric(**{**metric, "better": Better(metric["better"])}) for metric in row.metrics),
        variant_digest=row.variant_digest,
        program_digest=row.program_digest,
        parser_version=row.parser_version,
    )
