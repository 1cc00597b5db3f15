"""Starts of the other side of a pair: in the same block, and in earlier ones."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId
from farm.core.runs.measurement import COUNTED
from farm.database.rows import to_record
from farm.database.tables import attempts, cells, is_one_of, jobs, measurements

#: Attempts of a device that are looked through before a run. A block has at most eight starts; attempts that
#: were returned, or tried again, lie between them.
_LOOKED_THROUGH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStart:
    """What a device showed of itself right before a run; None where it hides that."""

    start_skin_c: float | None = None
    start_battery_c: float | None = None
    boot_id: str | None = None
    start_uptime_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSide(StoredStart):
    """The start of a run that another one is compared with."""

    cell_id: CellId
    #: False: it is the candidate.
    is_baseline: bool


_START_COLUMNS = tuple(StoredStart.__dataclass_fields__)


def other_sides(
    connection: Connection, attempt_ids: Collection[AttemptId]
) -> dict[AttemptId, list[OtherSide]]:
    """Return by attempt the earlier starts of its block and repeat that it is compared with, newest first.

    Those that count, among the last attempts of its device: steps in the index of its fencing tokens.
    """
    own, own_job, own_cell = attempts.alias("own"), jobs.alias("own_job"), cells.alias("own_cell")
    is_baseline = cells.c.cell_index == own_cell.c.baseline_index
    is_candidate = cells.c.baseline_index == own_cell.c.cell_index
    query = (
        sa.select(
            own.c.attempt_id.label("of_attempt"),
            cells.c.cell_id,
            sa.func.coalesce(is_baseline, sa.false()).label("is_baseline"),
            *(measurements.c[name] for name in _START_COLUMNS),
        )
        .select_from(own)
        .join(own_job, own_job.c.job_id == own.c.job_id)
        .join(own_cell, own_cell.c.cell_id == own_job.c.cell_id)
        .join(
            attempts,
            (attempts.c.device_id == own.c.device_id)
            & (attempts.c.fence < own.c.fence)
            & (attempts.c.fence >= own.c.fence - _LOOKED_THROUGH),
        )
        .join(
            jobs,
            (jobs.c.job_id == attempts.c.job_id)
            & (jobs.c.matrix_id == own_job.c.matrix_id)
            & (jobs.c.round == own_job.c.round)
            & (jobs.c.block == own_job.c.block)
            & (jobs.c.repeat == own_job.c.repeat),
        )
        .join(cells, (cells.c.cell_id == jobs.c.cell_id) & (is_baseline | is_candidate))
        .join(measurements, (measurements.c.attempt_id == attempts.c.attempt_id) & _counts(measurements))
        .where(own.c.attempt_id.in_(list(attempt_ids)))
        .order_by(own.c.attempt_id, attempts.c.fence.desc())
    )
    starts: defaultdict[AttemptId, list[OtherSide]] = defaultdict(list)
    for row in connection.execute(query):
        starts[row.of_attempt].append(to_record(OtherSide, row))
    return starts


def past_pair_starts(
    connection: Connection, baseline_id: CellId, candidate_id: CellId
) -> list[tuple[StoredStart, StoredStart]]:
    """Return the starts of both sides of all blocks in which both cells have a run that counts."""
    baseline, candidate = measurements.alias("baseline"), measurements.alias("candidate")
    names = [(side, name) for side in (baseline, candidate) for name in _START_COLUMNS]
    query = (
        sa.select(*(side.c[name] for side, name in names))
        .select_from(baseline)
        .join(
            candidate,
            (candidate.c.round == baseline.c.round)
            & (candidate.c.block == baseline.c.block)
            & (candidate.c.repeat == baseline.c.repeat),
        )
        .where(baseline.c.cell_id == baseline_id, _counts(baseline))
        .where(candidate.c.cell_id == candidate_id, _counts(candidate))
    )
    count = len(_START_COLUMNS)
    return [(_start(row[:count]), _start(row[count:])) for row in connection.execute(query)]


def _counts(of: sa.FromClause) -> sa.ColumnElement[bool]:
    return of.c.accepted & is_one_of(of.c.quality, COUNTED)


def _start(values: tuple[Any, ...]) -> StoredStart:
    return StoredStart(**dict(zip(_START_COLUMNS, values, strict=True)))
