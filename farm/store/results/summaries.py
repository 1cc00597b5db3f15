"""Summaries of a matrix's accepted measurements, without samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, FactsId, MatrixId
from farm.core.runs.measurement import Metric, Quality, SampleKind
from farm.database.tables import cells, measurements

_METRICS = TypeAdapter(tuple[Metric, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementSummary:
    """The summary of an accepted measurement."""

    attempt_id: AttemptId
    cell_id: CellId
    round: int
    repeat: int
    quality: Quality
    quality_reasons: Sequence[str]
    kind: SampleKind
    sample_count: int
    value_ns: float
    p90_ns: float | None
    scatter: float | None
    metrics: tuple[Metric, ...]
    accelerator: str
    proof: str
    facts_id: FactsId | None


_COLUMNS = [measurements.c[name] for name in MeasurementSummary.__dataclass_fields__]


def list_summaries(
    connection: Connection, matrix_id: MatrixId, *, of: tuple[int, int]
) -> list[MeasurementSummary]:
    """Return the summaries of cells from one index to another, oldest first."""
    query = (
        sa.select(*_COLUMNS)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(cells.c.matrix_id == matrix_id, cells.c.cell_index.between(*of), measurements.c.accepted)
        .order_by(measurements.c.measurement_id)
    )
    return [_summary(row) for row in connection.execute(query)]


def _summary(row: sa.Row[Any]) -> MeasurementSummary:
    return MeasurementSummary(
        attempt_id=row.attempt_id,
        cell_id=row.cell_id,
        round=row.round,
        repeat=row.repeat,
        quality=Quality(row.quality),
        quality_reasons=row.quality_reasons,
        kind=SampleKind(row.kind),
        sample_count=row.sample_count,
        value_ns=row.value_ns,
        p90_ns=row.p90_ns,
        scatter=row.scatter,
        metrics=_METRICS.validate_python(row.metrics),
        accelerator=row.accelerator,
        proof=row.proof,
        facts_id=row.facts_id,
    )
