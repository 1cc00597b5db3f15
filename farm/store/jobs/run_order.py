"""The order in which benchmarks really ran on a device, by fencing token."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, MatrixId, SeriesId
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.job import JobKind
from farm.core.jobs.run_order import Predecessor, RunOrder, pause_s
from farm.core.runs.measurement import Quality
from farm.database.rows import is_among, to_record
from farm.database.tables import attempts, cells, is_one_of, jobs, measurements


def has_run(of: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition that an attempt is over, and that its agent started it or reported of it."""
    is_over = is_one_of(of.c.state, (AttemptState.FINISHED, AttemptState.LOST))
    return is_over & (of.c.measuring_at.is_not(None) | of.c.report_digest.is_not(None))


_OWN, _EARLIER, _PREVIOUS = attempts.alias("own"), attempts.alias("earlier"), attempts.alias("previous")
_OWN_JOB, _OWN_RUN = jobs.alias("own_job"), measurements.alias("own_run")
_PREVIOUS_ID = (
    sa.select(_EARLIER.c.attempt_id)
    .where(_EARLIER.c.device_id == _OWN.c.device_id, _EARLIER.c.fence < _OWN.c.fence, has_run(_EARLIER))
    .order_by(_EARLIER.c.fence.desc())
    .limit(1)
    .correlate(_OWN)
    .scalar_subquery()
)
#: Built once: to build it takes longer than to run it for the attempts of a cell.
_ORDERS_QUERY = (
    sa.select(
        _OWN.c.attempt_id.label("of_attempt"),
        _OWN_JOB.c.block,
        _OWN_JOB.c.place,
        _OWN_RUN.c.boot_id.label("own_boot"),
        _OWN_RUN.c.start_uptime_s.label("own_start_s"),
        _PREVIOUS.c.attempt_id,
        _PREVIOUS.c.outcome,
        jobs.c.job_id,
        jobs.c.matrix_id,
        (jobs.c.matrix_id == _OWN_JOB.c.matrix_id).label("same_matrix"),
        jobs.c.cell_id,
        cells.c.label,
        measurements.c.series_id,
        measurements.c.boot_id,
        measurements.c.duration_s.label("ran_s"),
        (measurements.c.start_uptime_s + measurements.c.duration_s).label("end_s"),
    )
    .select_from(_OWN)
    .join(_OWN_JOB, _OWN_JOB.c.job_id == _OWN.c.job_id)
    .outerjoin(_OWN_RUN, (_OWN_RUN.c.attempt_id == _OWN.c.attempt_id) & _OWN_RUN.c.accepted)
    .outerjoin(_PREVIOUS, _PREVIOUS.c.attempt_id == _PREVIOUS_ID)
    .outerjoin(jobs, (jobs.c.job_id == _PREVIOUS.c.job_id))
    .outerjoin(cells, cells.c.cell_id == jobs.c.cell_id)
    .outerjoin(measurements, (measurements.c.attempt_id == _PREVIOUS.c.attempt_id) & measurements.c.accepted)
    .where(_OWN_JOB.c.kind == JobKind.BENCHMARK)
)


def orders_of(connection: Connection, attempt_ids: Collection[AttemptId]) -> dict[AttemptId, RunOrder]:
    """Return the order of attempts by id; those of health checks have none.

    The attempt before each is one step in the index of its device's fencing tokens, however long the history
    is; a step more for each attempt there that was returned before anything ran.
    """
    query = _ORDERS_QUERY.where(is_among(connection, _OWN.c.attempt_id, attempt_ids))
    return {AttemptId(row.of_attempt): _order(row) for row in connection.execute(query)}


def _order(row: sa.Row[*tuple[Any, ...]]) -> RunOrder:
    predecessor = None
    if row.cell_id is not None:
        pause = pause_s(start_s=row.own_start_s, boot=row.own_boot, end_s=row.end_s, boot_before=row.boot_id)
        predecessor = to_record(Predecessor, row, pause_s=pause)
    return RunOrder(block=row.block, place=row.place, predecessor=predecessor)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A benchmark or a health check that ran on a device; without a value where it was not measured."""

    attempt_id: AttemptId
    #: None for a health check, as all of a matrix is.
    matrix_id: MatrixId | None
    cell_id: CellId | None
    label: str | None
    round: int
    block: int
    repeat: int
    series_id: SeriesId | None
    quality: Quality | None
    value_ns: float | None
    boot_id: str | None


def last_runs(connection: Connection, device_id: DeviceId, *, limit: int) -> list[PastRun]:
    """Return the last runs on a device in the order in which they ran, health checks among them."""
    query = (
        sa.select(
            attempts.c.attempt_id,
            jobs.c.matrix_id,
            jobs.c.cell_id,
            cells.c.label,
            jobs.c.round,
            jobs.c.block,
            jobs.c.repeat,
            measurements.c.series_id,
            measurements.c.quality,
            measurements.c.value_ns,
            measurements.c.boot_id,
        )
        .select_from(attempts)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .outerjoin(cells, cells.c.cell_id == jobs.c.cell_id)
        .outerjoin(
            measurements, (measurements.c.attempt_id == attempts.c.attempt_id) & measurements.c.accepted
        )
        .where(attempts.c.device_id == device_id, has_run(attempts))
        .order_by(attempts.c.fence.desc())
        .limit(limit)
    )
    return [to_record(PastRun, row) for row in connection.execute(query)][::-1]


def measured_devices(connection: Connection, *, after: int, at_most: int) -> tuple[int, list[DeviceId]]:
    """Return the newest measurement, and the devices of those behind one, among so many of the newest."""
    newest = connection.execute(sa.select(sa.func.max(measurements.c.measurement_id))).scalar_one() or 0
    query = (
        sa.select(cells.c.device_id)
        .distinct()
        .select_from(measurements.join(cells, cells.c.cell_id == measurements.c.cell_id))
        .where(measurements.c.measurement_id > max(after, newest - at_most), measurements.c.accepted)
    )
    return newest, [DeviceId(name) for name in connection.execute(query).scalars()]
