"""Rows of measurements, samples and conditions for other tools, and what changed since an earlier export."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.devices.condition import Condition
from farm.core.runs.evidence import Evidence
from farm.core.runs.samples import decode_samples
from farm.core.runs.trace import TraceSample
from farm.phone.condition.run_trace import run_trace
from farm.services.results.explanations.sides import evidence_of
from farm.store.operations.database_epochs import current_epoch
from farm.store.results.interchange import exported_rows
from farm.wire.documents.results.export import (
    EXPORT_BLOCK,
    MAX_CONDITIONS_PAGE,
    ConditionPage,
    ConditionRow,
    ExportChanges,
    MeasurementPage,
    MeasurementRow,
    Moment,
    SamplePage,
    SampleRow,
    json_text,
)

_RECIPE = ("precision", "format", "memory_format", "target")
_OF_CONDITIONS = (
    "uptime_s",
    "thermal_status",
    "skin_c",
    "battery_c",
    "battery_level_pct",
    "battery_v",
    "screen_on",
    "load_1m",
    "memory_available_bytes",
)
#: What no device samples during a run.
_NOT_SAMPLED = (
    "thermal_status",
    "skin_c",
    "battery_c",
    "battery_level_pct",
    "screen_on",
    "load_1m",
    "memory_available_bytes",
)
_FACTS = ("device_model", "soc", "android", "build_fingerprint")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRange:
    """The measurements of a page: numbers above `after` and below `before`, measured in a span of time."""

    after: int
    before: int
    since: datetime | None = None
    until: datetime | None = None
    limit: int


def export_measurements(connection: Connection, wanted: ExportRange) -> MeasurementPage:
    """Return the next measurements that count."""
    rows, next_after = _page(connection, wanted, exported_rows.ROWS)
    facts = exported_rows.facts_of(connection, {row["facts_id"] for row in rows if row["facts_id"]})
    return MeasurementPage(
        rows=[_measurement_row(row, facts.get(row["facts_id"], {})) for row in rows], next_after=next_after
    )


def _measurement_row(row: Mapping[str, Any], facts: Mapping[str, Any]) -> MeasurementRow:
    recipe = row["recipe"] or {}
    given = {name: row[name] for name in MeasurementRow.model_fields if name in row}
    return MeasurementRow(
        **given
        | {name: recipe.get(name) for name in _RECIPE}
        | {name: facts.get(name) for name in _FACTS}
        | {name: json_text(row[name]) for name in ("settings", "metrics")}
        | {"energy": json_text(row["energy"]) if row["energy"] else None}
        | {"virtual": bool(facts.get("virtual"))}
    )


def export_samples(connection: Connection, wanted: ExportRange) -> SamplePage:
    """Return the samples of the next measurements that count."""
    rows, next_after = _page(connection, wanted, exported_rows.SAMPLES)
    return SamplePage(
        rows=[SampleRow(samples_ns=_samples(row.pop("samples")), **row) for row in rows],
        next_after=next_after,
    )


def _samples(packed: bytes | None) -> list[int]:
    return [] if packed is None else list(decode_samples(packed))


def export_conditions(connection: Connection, wanted: ExportRange) -> ConditionPage:
    """Return the looks at devices around the runs of the next measurements that count."""
    rows, next_after = _page(connection, wanted, exported_rows.ATTEMPTS, most=MAX_CONDITIONS_PAGE)
    evidence = evidence_of(connection, [row["attempt_id"] for row in rows])
    return ConditionPage(
        rows=[
            ConditionRow(**row, moment=moment, **values)
            for row in rows
            if row["attempt_id"] in evidence
            for moment, values in _looks(evidence[row["attempt_id"]])
        ],
        next_after=next_after,
    )


def _page(
    connection: Connection,
    wanted: ExportRange,
    columns: exported_rows.ExportedColumns,
    *,
    most: int | None = None,
) -> tuple[list[dict[str, Any]], int | None]:
    """Return the rows of a page, and the number behind which the next one begins; None at the end."""
    limit = min(wanted.limit, most or wanted.limit)
    last = exported_rows.last_of_page(connection, after=wanted.after, until=wanted.before, limit=limit)
    if last is None:
        return [], None
    rows = exported_rows.counted_rows(
        connection, columns, first=wanted.after + 1, last=last, since=wanted.since, until=wanted.until
    )
    return rows, last


def _looks(evidence: Evidence) -> Iterator[tuple[Moment, dict[str, Any]]]:
    if evidence.before is not None:
        yield "before", _condition_values(evidence.before)
    trace = run_trace(evidence.trace)
    for sample in () if trace is None else trace.samples:
        yield "during", _sample_values(sample)
    if evidence.after is not None:
        yield "after", _condition_values(evidence.after)


def _condition_values(condition: Condition) -> dict[str, Any]:
    return {name: getattr(condition, name) for name in _OF_CONDITIONS} | {
        "battery_a": None,
        "power": condition.plugged,
        "rss_bytes": None,
        "cpu_limit_hz": [policy.max_hz for policy in condition.cpus],
        "cpu_clock_hz": [policy.current_hz for policy in condition.cpus],
        "gpu_limit_hz": None,
        "gpu_clock_hz": None,
        "temperatures_c": json_text(dict(condition.temperatures_c)),
        "cooling": json_text(dict(condition.cooling)),
    }


def _sample_values(sample: TraceSample) -> dict[str, Any]:
    return dict.fromkeys(_NOT_SAMPLED) | {
        "uptime_s": sample.uptime_s,
        "battery_a": sample.battery_a,
        "battery_v": sample.battery_v,
        "power": sample.charger,
        "rss_bytes": sample.rss_bytes,
        "cpu_limit_hz": [clock.limit_hz for clock in sample.clocks],
        "cpu_clock_hz": [clock.current_hz for clock in sample.clocks],
        "gpu_limit_hz": sample.gpu.limit_hz,
        "gpu_clock_hz": sample.gpu.current_hz,
        "temperatures_c": json_text(dict(sample.temperatures_c)),
        "cooling": json_text(dict(sample.cooling)),
    }


def export_changes(
    connection: Connection, *, after: int, since: datetime | None, now: datetime
) -> ExportChanges:
    """Return what changed since a time, and in measurements above a number; without a time, nothing did."""
    blocks: list[int] = []
    matrices: list[MatrixId] = []
    if since is not None:
        blocks = exported_rows.changed_blocks(connection, since=since, size=EXPORT_BLOCK)
        matrices = exported_rows.changed_matrices(connection, after=after, since=since)
    return ExportChanges(
        epoch=current_epoch(connection).epoch,
        as_of=now,
        measurement_id=exported_rows.last_measurement(connection),
        block=EXPORT_BLOCK,
        blocks=tuple(blocks),
        matrices=tuple(matrices),
    )
