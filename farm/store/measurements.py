"""Measurements and the series they belong to."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.ids import AttemptId, CellId, DeviceId, Digest, FactsId, JobId, MatrixId, SeriesId
from farm.core.measurement import Judgement, Quality, Reading, SampleKind, Summary
from farm.core.plan import SettingValue
from farm.core.samples import encode
from farm.core.variant import Recipe
from farm.store.tables import cells, measurements, series

_RECIPE = TypeAdapter(Recipe)
_INSERT = measurements.insert()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measurement's row, samples left where they are."""

    measurement_id: int
    job_id: JobId
    attempt_id: AttemptId
    cell_id: CellId
    series_id: SeriesId
    round: int
    repeat: int
    accepted: bool
    quality: Quality
    quality_reasons: Sequence[str]
    kind: SampleKind
    value_ns: float
    measured_at: datetime


_COLUMNS = [measurements.c[name] for name in Measurement.__dataclass_fields__]


def put_series(
    connection: Connection,
    *,
    digest: Digest,
    model: str | None,
    recipe: Recipe | None,
    backend: str,
    harness: str,
    settings: Mapping[str, SettingValue],
    device_id: DeviceId,
) -> SeriesId:
    """The series with this identity, made where it is new."""
    found = connection.execute(_series_id(), {"digest": digest}).scalar_one_or_none()
    if found is not None:
        return SeriesId(found)
    inserted = connection.execute(
        series.insert()
        .values(
            series_digest=digest,
            model=model,
            recipe=None if recipe is None else _RECIPE.dump_python(recipe, mode="json"),
            backend=backend,
            harness=harness,
            settings=dict(settings),
            device_id=device_id,
        )
        .returning(series.c.series_id)
    )
    return SeriesId(inserted.scalar_one())


@cache
def _series_id() -> sa.Select[Any]:
    return sa.select(series.c.series_id).where(series.c.series_digest == sa.bindparam("digest"))


def add_measurement(
    connection: Connection,
    *,
    job_id: JobId,
    attempt_id: AttemptId,
    cell_id: CellId,
    series_id: SeriesId,
    round: int,
    repeat: int,
    variant_digest: Digest | None,
    program_digest: Digest,
    facts_id: FactsId | None,
    reading: Reading,
    summary: Summary,
    judgement: Judgement,
    parser_version: int,
    now: datetime,
) -> None:
    """Record an accepted measurement.

    Raises:
        sqlalchemy.exc.IntegrityError: the job has an accepted measurement already.
    """
    row = {
        "job_id": job_id,
        "attempt_id": attempt_id,
        "cell_id": cell_id,
        "series_id": series_id,
        "round": round,
        "repeat": repeat,
        "variant_digest": variant_digest,
        "program_digest": program_digest,
        "facts_id": facts_id,
        "accepted": True,
        "quality": judgement.quality,
        "quality_reasons": list(judgement.reasons),
        "actual_backend": reading.actual_backend,
        "accelerator": reading.accelerator,
        "proof": reading.proof,
        "kind": summary.kind,
        "sample_count": summary.count,
        "value_ns": summary.value_ns,
        "mean_ns": summary.mean_ns,
        "min_ns": summary.min_ns,
        "max_ns": summary.max_ns,
        "p90_ns": summary.p90_ns,
        "scatter": summary.scatter,
        "samples": encode(list(reading.samples_ns)) if reading.samples_ns else None,
        "metrics": [asdict(metric) for metric in reading.metrics],
        "parser_version": parser_version,
        "measured_at": now,
    }
    connection.execute(_INSERT, row)


def accepted_measurements(connection: Connection, matrix_id: MatrixId) -> list[Measurement]:
    """The accepted measurements of a matrix, oldest first."""
    query = (
        sa.select(*_COLUMNS)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(cells.c.matrix_id == matrix_id, measurements.c.accepted)
        .order_by(measurements.c.measurement_id)
    )
    return [_measurement(row) for row in connection.execute(query)]


def accepted_qualities(connection: Connection, cell_id: CellId) -> list[Quality]:
    """The qualities of a cell's accepted measurements, oldest first."""
    query = (
        sa.select(measurements.c.quality)
        .where(measurements.c.cell_id == cell_id, measurements.c.accepted)
        .order_by(measurements.c.measurement_id)
    )
    return [Quality(quality) for quality in connection.execute(query).scalars()]


def _measurement(row: sa.Row[Any]) -> Measurement:
    return Measurement(
        measurement_id=row.measurement_id,
        job_id=row.job_id,
        attempt_id=row.attempt_id,
        cell_id=row.cell_id,
        series_id=row.series_id,
        round=row.round,
        repeat=row.repeat,
        accepted=row.accepted,
        quality=Quality(row.quality),
        quality_reasons=row.quality_reasons,
        kind=SampleKind(row.kind),
        value_ns=row.value_ns,
        measured_at=row.measured_at,
    )
