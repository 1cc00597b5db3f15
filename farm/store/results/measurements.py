"""Measurements and the series they belong to."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection
from sqlalchemy.sql.dml import ReturningInsert

from farm.core.base.ids import AttemptId, CellId, Digest, FactsId, JobId, MatrixId, SeriesId
from farm.core.devices.controls import ControlLevel, control_level
from farm.core.models.variant import Recipe
from farm.core.results.settle.new_measurement import NewMeasurement, NewSeries
from farm.core.runs.measurement import Quality, SampleKind
from farm.core.runs.samples import encode_samples
from farm.database.bulk import is_among
from farm.database.tables import cells, measurements, series
from farm.store.results.placements import stored_placement

_RECIPE = TypeAdapter(Recipe)
_INSERT = measurements.insert()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measurement's row without its samples."""

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
    facts_id: FactsId | None
    measured_at: datetime
    #: How many influences on the measurement were controlled.
    control_level: ControlLevel


_COLUMNS = [measurements.c[name] for name in Measurement.__dataclass_fields__]


def put_series(connection: Connection, asked: Iterable[NewSeries]) -> dict[Digest, SeriesId]:
    """Return the ids of series by digest, adding new ones."""
    by_digest = {each.digest: each for each in asked}
    found = {
        row.series_digest: row.series_id
        for row in connection.execute(_known_series_query(), {"digests": [*by_digest]})
    }
    for digest, each in by_digest.items():
        if digest not in found:
            found[digest] = connection.execute(_insert_series_statement(), _series_row(each)).scalar_one()
    return found


@cache
def _known_series_query() -> sa.Select[Any]:
    asked = series.c.series_digest.in_(sa.bindparam("digests", expanding=True))
    return sa.select(series.c.series_digest, series.c.series_id).where(asked)


@cache
def _insert_series_statement() -> ReturningInsert[Any]:
    return series.insert().returning(series.c.series_id)


def _series_row(new: NewSeries) -> dict[str, object]:
    return {
        "series_digest": new.digest,
        "model": new.model,
        "recipe": None if new.recipe is None else _RECIPE.dump_python(new.recipe, mode="json"),
        "backend": new.backend,
        "harness": new.harness,
        "settings": dict(new.settings),
        "device_id": new.device_id,
    }


def add_measurements(connection: Connection, new: Sequence[NewMeasurement]) -> None:
    """Record accepted measurements in their order.

    Raises:
        sqlalchemy.exc.IntegrityError: a job has an accepted measurement already; none is recorded.
    """
    series_ids = put_series(connection, (each.series for each in new))
    connection.execute(_INSERT, [_row(each, series_ids[each.series.digest]) for each in new])


def _row(new: NewMeasurement, series_id: SeriesId) -> dict[str, object]:
    return {"series_id": series_id, **stored_values(new)}


def stored_values(new: NewMeasurement) -> dict[str, object]:
    """Return a measurement's values by column, without its id and series."""
    reading, summary = new.reading, new.summary
    return {
        "job_id": new.job_id,
        "attempt_id": new.attempt_id,
        "cell_id": new.cell_id,
        "round": new.round,
        "repeat": new.repeat,
        "variant_digest": new.variant_digest,
        "program_digest": new.program_digest,
        "facts_id": new.facts_id,
        "accepted": new.accepted,
        "quality": new.judgement.quality,
        "quality_reasons": list(new.judgement.reasons),
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
        "samples": encode_samples(list(reading.samples_ns)) if reading.samples_ns else None,
        "metrics": [asdict(metric) for metric in reading.metrics],
        "placement": stored_placement(reading.placement),
        "notices": list(new.notices) or None,
        "controls": [asdict(state) for state in new.controls] or None,
        "control_level": control_level(new.controls),
        "cpu_s": new.cpu_s,
        "parser_version": new.parser_version,
        "measured_at": new.measured_at,
    }


def accepted_measurements(
    connection: Connection, matrix_id: MatrixId, *, of: tuple[int, int] | None = None
) -> list[Measurement]:
    """Return the accepted measurements of a matrix's cells from one index to another, oldest first."""
    query = (
        sa.select(*_COLUMNS)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(cells.c.matrix_id == matrix_id, measurements.c.accepted)
        .order_by(measurements.c.measurement_id)
    )
    if of is not None:
        query = query.where(cells.c.cell_index.between(*of))
    return [_measurement(row) for row in connection.execute(query)]


def accepted_of_cells(connection: Connection, cell_ids: Collection[CellId]) -> list[Measurement]:
    """Return the accepted measurements of cells, oldest first."""
    query = (
        sa.select(*_COLUMNS)
        .where(is_among(connection, measurements.c.cell_id, cell_ids), measurements.c.accepted)
        .order_by(measurements.c.measurement_id)
    )
    return [_measurement(row) for row in connection.execute(query)]


def accepted_qualities(connection: Connection, cell_id: CellId) -> list[Quality]:
    """Return the qualities of a cell's accepted measurements, oldest first."""
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
        facts_id=row.facts_id,
        measured_at=row.measured_at,
        control_level=ControlLevel(row.control_level),
    )
