"""Retraction of measurements by persons: a copy takes the place of each, and what was known before stays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, JobId, MatrixId
from farm.core.runs.measurement import Quality
from farm.database.rows import is_among
from farm.database.tables import cells, measurements
from farm.database.transaction import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractSelection:
    """The accepted measurements that are meant: of a matrix, or its part on a device, a cell, or a run."""

    matrix_id: MatrixId | None = None
    device_id: DeviceId | None = None
    cell_id: CellId | None = None
    attempt_id: AttemptId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractTarget:
    """An accepted measurement that is retracted, or counts again."""

    measurement_id: int
    job_id: JobId


def retract_targets(
    connection: Connection, selection: RetractSelection, *, retracted: bool, limit: int
) -> list[RetractTarget]:
    """Return the next measurements of a selection that are retracted, or that are not."""
    is_retracted = measurements.c.retracted_by.is_not(None)
    query = (
        sa.select(measurements.c.measurement_id, measurements.c.job_id)
        .join(cells, cells.c.cell_id == measurements.c.cell_id)
        .where(measurements.c.accepted, is_retracted if retracted else ~is_retracted)
        .order_by(measurements.c.measurement_id)
        .limit(limit)
    )
    if selection.matrix_id is not None:
        query = query.where(cells.c.matrix_id == selection.matrix_id)
    if selection.device_id is not None:
        query = query.where(cells.c.device_id == selection.device_id)
    if selection.cell_id is not None:
        query = query.where(measurements.c.cell_id == selection.cell_id)
    if selection.attempt_id is not None:
        query = query.where(measurements.c.attempt_id == selection.attempt_id)
    return [RetractTarget(**row._mapping) for row in connection.execute(query)]


def retract(tx: Tx, measurement_ids: Sequence[int], *, by: str, reason: str) -> None:
    """Put a copy of the quality `withdrawn` in the place of accepted measurements."""
    withdrawn = {"quality": Quality.WITHDRAWN, "quality_reasons": [reason], "retracted_by": by}
    _replace(tx, [(row, withdrawn) for row in _rows(tx.connection, measurement_ids)])


def reinstate(tx: Tx, measurement_ids: Sequence[int]) -> None:
    """Put a copy of what was retracted in the place of accepted retractions."""
    retracted = _rows(tx.connection, measurement_ids)
    readings = _readings(tx.connection, {row["attempt_id"] for row in retracted})
    copies = []
    for row in retracted:
        parsed = as_parsed(row, [other for other in readings if other["attempt_id"] == row["attempt_id"]])
        same = {name: parsed[name] for name in ("quality", "quality_reasons")}
        copies.append((row, {**same, "retracted_by": None}))
    _replace(tx, copies)


def keep_retraction(tx: Tx, attempt_id: AttemptId, superseded_id: int) -> None:
    """Retract the accepted measurement of an attempt if the one that it superseded was retracted."""
    (before,) = _rows(tx.connection, [superseded_id])
    if before["retracted_by"] is None:
        return
    accepted = sa.select(measurements.c.measurement_id).where(
        measurements.c.attempt_id == attempt_id, measurements.c.accepted
    )
    (reason,) = before["quality_reasons"]
    newest = tx.connection.execute(accepted).scalar_one()
    retract(tx, [newest], by=before["retracted_by"], reason=reason)


def as_parsed(stored: Mapping[str, Any], readings: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return a reading with the quality that it has apart from its retraction.

    Args:
        stored: a reading of an attempt.
        readings: all readings of the attempt, oldest first.
    """
    if stored["retracted_by"] is None:
        return stored
    parsed = [row for row in readings if row["retracted_by"] is None]
    newest = max(parsed, key=lambda row: int(row["measurement_id"]))
    return {**stored, "quality": newest["quality"], "quality_reasons": newest["quality_reasons"]}


def _rows(connection: Connection, measurement_ids: Sequence[int]) -> list[Mapping[str, Any]]:
    query = sa.select(measurements).where(
        is_among(connection, measurements.c.measurement_id, measurement_ids)
    )
    rows = connection.execute(query.order_by(measurements.c.measurement_id)).mappings()
    return [dict(row) for row in rows]


def _readings(connection: Connection, attempt_ids: set[int]) -> list[Mapping[str, Any]]:
    names = ("measurement_id", "attempt_id", "quality", "quality_reasons", "retracted_by")
    query = sa.select(*(measurements.c[name] for name in names)).where(
        is_among(connection, measurements.c.attempt_id, attempt_ids)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def _replace(tx: Tx, copies: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
    """Supersede accepted measurements by copies with other values."""
    if not copies:
        return
    ids = [row["measurement_id"] for row, _ in copies]
    tx.connection.execute(
        measurements.update()
        .where(is_among(tx.connection, measurements.c.measurement_id, ids))
        .values(accepted=False, superseded_at=tx.now)
    )
    tx.connection.execute(
        measurements.insert(),
        [
            {
                **{name: value for name, value in row.items() if name != "measurement_id"},
                **changes,
                "retraction": row["retraction"] + 1,
            }
            for row, changes in copies
        ],
    )
