"""Stored readings for reparsing evidence by a newer parser version."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, MatrixId
from farm.core.jobs.job import JobKind, JobState
from farm.core.results.settle.report import NewMeasurement
from farm.core.runs.measurement import EXTERNAL_ENERGY, Outcome, Quality
from farm.database.tables import attempts, cells, jobs, literal, measurements, programs
from farm.database.transaction import Tx
from farm.store.results.measurements import stored_values

#: Outcomes that an adapter decided: all others ended without one.
_DECIDED = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.UNSUPPORTED)
#: Of a stored reading, what another reading of the same evidence may have otherwise.
COMPARED = (
    "value_ns",
    "kind",
    "sample_count",
    "quality",
    "actual_backend",
    "accelerator",
    "proof",
    "quality_reasons",
    "mean_ns",
    "min_ns",
    "max_ns",
    "p90_ns",
    "scatter",
    "samples",
    "metrics",
    "placement",
    "generation",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReparseSelection:
    """A selection of evidence to reparse; None does not restrict."""

    matrix_id: MatrixId | None = None
    harness: str | None = None
    #: Only attempts that ended then or later.
    since: datetime | None = None


def attempts_to_reparse(
    connection: Connection, selection: ReparseSelection, *, after: AttemptId, limit: int
) -> list[AttemptId]:
    """Return the attempts that settled benchmark jobs, in the order of their ids."""
    query = (
        sa.select(attempts.c.attempt_id)
        .join(jobs, jobs.c.attempt_id == attempts.c.attempt_id)
        .where(
            attempts.c.attempt_id > after,
            jobs.c.kind == literal(JobKind.BENCHMARK),
            jobs.c.state == literal(JobState.FINISHED),
            jobs.c.outcome.in_(_DECIDED),
        )
        .order_by(attempts.c.attempt_id)
        .limit(limit)
    )
    if selection.matrix_id is not None:
        query = query.where(jobs.c.matrix_id == selection.matrix_id)
    if selection.harness is not None:
        query = query.join(cells, cells.c.cell_id == jobs.c.cell_id)
        query = query.join(programs, programs.c.program_id == cells.c.program_id)
        query = query.where(programs.c.harness == selection.harness)
    if selection.since is not None:
        query = query.where(attempts.c.finished_at >= selection.since)
    return list(connection.execute(query).scalars())


def readings_by_attempt(
    connection: Connection, attempt_ids: Collection[AttemptId]
) -> dict[AttemptId, list[Mapping[str, Any]]]:
    """Return all readings of attempts with every column, in the order of parser versions."""
    query = (
        sa.select(measurements)
        .where(measurements.c.attempt_id.in_(attempt_ids))
        .order_by(measurements.c.parser_version, measurements.c.measurement_id)
    )
    rows_by_attempt: defaultdict[AttemptId, list[Mapping[str, Any]]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        rows_by_attempt[row["attempt_id"]].append(dict(row))
    return dict(rows_by_attempt)


def changed_columns(stored: Mapping[str, Any], new: NewMeasurement) -> list[str]:
    """Return the columns in which a new reading differs, in the order of `COMPARED`."""
    values = stored_values(new)
    # What was imported is no part of the evidence.
    printed = [metric for metric in stored["metrics"] if metric["name"] != EXTERNAL_ENERGY]
    before = {**stored, "metrics": printed}
    return [name for name in COMPARED if _column_value(values[name]) != _column_value(before[name])]


def supersede(tx: Tx, measurement_id: int) -> bool:
    """Mark a reading as superseded; False if it was superseded already."""
    done = tx.connection.execute(
        measurements.update()
        .where(measurements.c.measurement_id == measurement_id, measurements.c.accepted)
        .values(accepted=False, superseded_at=tx.now)
    )
    return done.rowcount == 1


def withdraw(tx: Tx, measurement_id: int, *, parser_version: int, reason: str) -> bool:
    """Replace a reading by one of a quality that is not compared; False as in `supersede`."""
    of_it = sa.select(measurements).where(measurements.c.measurement_id == measurement_id)
    row = tx.connection.execute(of_it).mappings().one()
    if not supersede(tx, measurement_id):
        return False
    values = {name: value for name, value in row.items() if name != "measurement_id"}
    withdrawn = {"quality": Quality.WITHDRAWN, "quality_reasons": [reason], "parser_version": parser_version}
    tx.connection.execute(measurements.insert(), [{**values, **withdrawn}])
    return True


def _column_value(value: Any) -> Any:
    """Return a value as its column returns it: lists instead of tuples, text instead of enums."""
    if isinstance(value, Mapping):
        return {str(key): _column_value(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_column_value(item) for item in value]
    return str(value) if isinstance(value, str) else value
