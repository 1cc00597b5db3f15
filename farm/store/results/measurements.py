"""Measurements, their summaries and details, and the series they belong to."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, Digest, FactsId, MatrixId, SeriesId
from farm.core.devices.controls import ControlLevel, ControlState, control_level
from farm.core.models.variant import Recipe
from farm.core.results.pairing import BlockKey
from farm.core.results.settle.report import NewMeasurement, NewSeries
from farm.core.runs.derived.sustained import is_sustained, latency_profile
from farm.core.runs.measurement import Metric, Quality, Reading, SampleKind, SampleSummary
from farm.core.runs.samples import decode_samples, encode_samples
from farm.database.known_at import known_at
from farm.database.rows import is_among, to_record
from farm.database.tables import cells, is_one_of, measurements, series
from farm.store.results.placements import stored_placement
from farm.wire.documents.results.results import ReadingView

_RECIPE = TypeAdapter(Recipe)
_METRICS = TypeAdapter(tuple[Metric, ...])
_INSERT = measurements.insert()


class Measurement(NamedTuple):
    """What is read of an accepted measurement. A plain tuple: one question reads thousands."""

    attempt_id: AttemptId
    cell_id: CellId
    series_id: SeriesId
    round: int
    block: int
    repeat: int
    #: In JSON: of thousands, most have none.
    quality_reasons_text: str
    value_ns: float
    min_ns: int | None
    clock_step_ns: int
    facts_id: FactsId | None
    start_skin_c: float | None
    start_battery_c: float | None
    boot_id: str | None
    start_uptime_s: float | None
    #: Since 1970.
    measured_us: int
    kind: SampleKind
    quality: Quality
    #: The number of influences on the measurement that were controlled.
    control_level: ControlLevel

    @property
    def quality_reasons(self) -> Sequence[str]:
        """Return why it has its quality."""
        return () if self.quality_reasons_text == "[]" else tuple(json.loads(self.quality_reasons_text))

    def in_round(self, round: int) -> "Measurement":
        """Return it as one of another round; `_replace` would ask for each field by its name."""
        return Measurement._make((*self[:_ROUND], round, *self[_ROUND + 1 :]))


_ROUND = Measurement._fields.index("round")

_REASONS_TEXT = sa.cast(measurements.c.quality_reasons, sa.Text).label("quality_reasons_text")
_MEASURED_US = sa.type_coerce(measurements.c.measured_at, sa.BigInteger).label("measured_us")
_AS_STORED = {column.name: column for column in (_REASONS_TEXT, _MEASURED_US)}
_MEASUREMENT_COLUMNS = [
    _AS_STORED[name] if name in _AS_STORED else measurements.c[name] for name in Measurement._fields
]
_KINDS = {kind.value: kind for kind in SampleKind}
_QUALITIES = {quality.value: quality for quality in Quality}
_LEVELS = {level.value: level for level in ControlLevel}


def with_enums(row: sa.Row[*tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the values of a row whose last three columns are kind, quality and control level."""
    *values, kind, quality, level = row
    return (*values, _KINDS[kind], _QUALITIES[quality], _LEVELS[level])


_KNOWN_SERIES_QUERY = sa.select(series.c.series_digest, series.c.series_id).where(
    series.c.series_digest.in_(sa.bindparam("digests", expanding=True))
)
_INSERT_SERIES_STATEMENT = series.insert().returning(series.c.series_id)


def put_series(connection: Connection, new_series: Iterable[NewSeries]) -> dict[Digest, SeriesId]:
    """Return the ids of series by digest, adding new ones."""
    by_digest = {new.digest: new for new in new_series}
    known = connection.execute(_KNOWN_SERIES_QUERY, {"digests": [*by_digest]})
    ids = {row.series_digest: row.series_id for row in known}
    for digest, new in by_digest.items():
        if digest not in ids:
            ids[digest] = connection.execute(_INSERT_SERIES_STATEMENT, _series_row(new)).scalar_one()
    return ids


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
    series_ids = put_series(connection, (item.series for item in new))
    rows = [{"series_id": series_ids[item.series.digest], **stored_values(item)} for item in new]
    connection.execute(_INSERT, rows)


def stored_values(new: NewMeasurement) -> dict[str, object]:
    """Return a measurement's values by column, without its id and series."""
    return {
        "attempt_id": new.attempt_id,
        "cell_id": new.cell_id,
        "quality": new.quality,
        "actual_backend": new.actual_backend,
        "accelerator": new.accelerator,
        "proof": new.proof,
        "placement": stored_placement(new.placement),
        **new.values,
    }


def reading_values(
    reading: Reading, summary: SampleSummary, controls: Sequence[ControlState]
) -> dict[str, object]:
    """Return by column the numbers of a reading, and the controls of its run as they were read back."""
    summary_values = _field_values(summary)
    return {
        "sample_count": summary_values.pop("count"),
        **summary_values,
        "clock_step_ns": reading.clock_step_ns,
        "samples": encode_samples(list(reading.samples_ns)) if reading.samples_ns else None,
        "metrics": [_field_values(metric) for metric in reading.metrics],
        "generation": None if reading.generation is None else asdict(reading.generation),
        "controls": [_field_values(state) for state in controls] or None,
        "control_level": control_level(controls),
    }


def _field_values(record: SampleSummary | Metric | ControlState) -> dict[str, object]:
    """Return the fields of a flat record; `asdict`, which copies each value, takes thirty times as long."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def is_accepted(connection: Connection) -> sa.ColumnElement[bool]:
    """Return the condition that a measurement is accepted: now, or at the moment that is asked for.

    Readings of one attempt supersede each other: at a moment, the first one that was not superseded by then
    counted.
    """
    at = known_at(connection)
    if at is None:
        return measurements.c.accepted == sa.true()
    before = measurements.alias("before")
    was_superseded_later = sa.exists().where(
        before.c.attempt_id == measurements.c.attempt_id,
        before.c.measurement_id < measurements.c.measurement_id,
        before.c.superseded_at > at,
    )
    return sa.and_(
        measurements.c.measured_at <= at,
        sa.or_(measurements.c.accepted, measurements.c.superseded_at > at),
        ~was_superseded_later.correlate(measurements),
    )


def accepted_measurements(connection: Connection, matrix_id: MatrixId) -> list[Measurement]:
    """Return the accepted measurements of a matrix's cells, oldest first."""
    query = (
        sa.select(*_MEASUREMENT_COLUMNS)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(cells.c.matrix_id == matrix_id, measurements.c.accepted)
        .order_by(measurements.c.measurement_id)
    )
    return [Measurement._make(with_enums(row)) for row in connection.execute(query).all()]


def accepted_of_cells(connection: Connection, cell_ids: Collection[CellId]) -> list[Measurement]:
    """Return the accepted measurements of cells, oldest first."""
    query = (
        sa.select(*_MEASUREMENT_COLUMNS)
        .where(is_among(connection, measurements.c.cell_id, cell_ids), is_accepted(connection))
        .order_by(measurements.c.measurement_id)
    )
    return [Measurement._make(with_enums(row)) for row in connection.execute(query).all()]


def metrics_of_cells(
    connection: Connection, cell_ids: Collection[CellId]
) -> dict[CellId, dict[BlockKey, tuple[Metric, ...]]]:
    """Return the metrics of the accepted measurements of cells, by cell and block."""
    columns = (measurements.c[name] for name in ("cell_id", "round", "block", "repeat", "metrics"))
    query = sa.select(*columns).where(
        is_among(connection, measurements.c.cell_id, cell_ids), is_accepted(connection)
    )
    metrics: dict[CellId, dict[BlockKey, tuple[Metric, ...]]] = {}
    for row in connection.execute(query):
        own = metrics.setdefault(CellId(row.cell_id), {})
        own[row.round, row.block, row.repeat] = _METRICS.validate_python(row.metrics)
    return metrics


#: What such runs say of their own time is wrong, or nothing.
_UNUSABLE_TIMES = (Quality.IMPLAUSIBLE, Quality.WITHDRAWN)


def newest_mean_ns(connection: Connection, digest: Digest) -> float | None:
    """Return the mean time of an iteration in the newest accepted run of a series; None without a run.

    Of any quality but those whose time is wrong: a throttled run says how long an iteration takes, too.
    """
    query = (
        sa.select(measurements.c.mean_ns)
        .join(series, series.c.series_id == measurements.c.series_id)
        .where(
            series.c.series_digest == digest,
            measurements.c.accepted,
            measurements.c.mean_ns > 0,
            ~is_one_of(measurements.c.quality, _UNUSABLE_TIMES),
        )
        .order_by(measurements.c.measured_at.desc(), measurements.c.measurement_id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()


def accepted_qualities(connection: Connection, cell_id: CellId) -> list[Quality]:
    """Return the qualities of a cell's accepted measurements, oldest first."""
    query = (
        sa.select(measurements.c.quality)
        .where(measurements.c.cell_id == cell_id, measurements.c.accepted)
        .order_by(measurements.c.measurement_id)
    )
    return [Quality(quality) for quality in connection.execute(query).scalars()]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReading:
    """A stored reading with its assessment."""

    quality: Quality
    quality_reasons: Sequence[str]
    notices: Sequence[str] | None
    reading: ReadingView


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
    samples_ns = () if row.samples is None else decode_samples(row.samples)
    has_profile = is_sustained(_METRICS.validate_python(row.metrics)) and sum(samples_ns) > 0
    values = {
        **row._mapping,
        "offered": (row.placement or {}).get("offered", ()),
        "samples_ns": samples_ns,
        "energy": row.energy or (),
        "profile": latency_profile(samples_ns) if has_profile else None,
    }
    return StoredReading(
        quality=Quality(row.quality),
        quality_reasons=row.quality_reasons,
        notices=row.notices,
        reading=ReadingView.model_validate({name: values[name] for name in ReadingView.model_fields}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementSummary:
    """The summary of an accepted measurement."""

    cell_id: CellId
    series_id: SeriesId
    round: int
    block: int
    repeat: int
    quality: Quality
    kind: SampleKind
    value_ns: float
    min_ns: int | None
    p90_ns: float | None
    scatter: float | None
    metrics: tuple[Metric, ...]
    accelerator: str
    proof: str
    facts_id: FactsId | None


_SUMMARY_COLUMNS = [measurements.c[name] for name in MeasurementSummary.__dataclass_fields__]


def list_summaries(
    connection: Connection, matrix_id: MatrixId, *, of: tuple[int, int]
) -> list[MeasurementSummary]:
    """Return the summaries of cells from one index to another, oldest first."""
    query = (
        sa.select(*_SUMMARY_COLUMNS)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(cells.c.matrix_id == matrix_id, cells.c.cell_index.between(*of), measurements.c.accepted)
        .order_by(measurements.c.measurement_id)
    )
    return [to_record(MeasurementSummary, row) for row in connection.execute(query)]
