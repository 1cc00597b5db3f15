"""What became of the cells of standing matrices: open jobs, and measurements that count."""

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, Digest, MatrixId
from farm.core.base.setting_values import SettingValue
from farm.core.jobs.job import JobState
from farm.core.runs.measurement import COUNTED, Outcome
from farm.database.rows import is_among
from farm.database.tables import (
    attempts,
    cells,
    device_facts,
    is_one_of,
    jobs,
    measurements,
    programs,
    standing_cells,
    variants,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProgress:
    """A cell of the matrix that last measured it."""

    matrix_id: MatrixId
    #: None while it is not stored, or never will be.
    cell_id: CellId | None
    jobs: int
    open_jobs: int
    is_measured: bool


_IS_QUEUED_CELL = sa.and_(
    cells.c.matrix_id == standing_cells.c.matrix_id, cells.c.cell_index == standing_cells.c.cell_index
)


def progress_by_version(connection: Connection, standing_id: int) -> dict[Digest, CellProgress]:
    """Return what became of the queued cells of a standing matrix, by their version digest."""
    is_open = sa.case((jobs.c.state != JobState.FINISHED, 1), else_=0)
    query = (
        sa.select(
            standing_cells.c.version_digest,
            standing_cells.c.matrix_id,
            cells.c.cell_id,
            sa.func.count(jobs.c.job_id),
            sa.func.coalesce(sa.func.sum(is_open), 0),
        )
        .outerjoin(cells, _IS_QUEUED_CELL)
        .outerjoin(jobs, jobs.c.cell_id == cells.c.cell_id)
        .where(standing_cells.c.standing_id == standing_id)
        .group_by(standing_cells.c.version_digest, standing_cells.c.matrix_id, cells.c.cell_id)
    )
    rows = connection.execute(query).all()
    measured = _measured(connection, [row.cell_id for row in rows if row.cell_id is not None])
    return {
        digest: CellProgress(
            matrix_id=matrix_id,
            cell_id=cell_id,
            jobs=own_jobs,
            open_jobs=open_jobs,
            is_measured=cell_id in measured,
        )
        for digest, matrix_id, cell_id, own_jobs, open_jobs in rows
    }


def _measured(connection: Connection, cell_ids: Collection[CellId]) -> set[CellId]:
    query = sa.select(measurements.c.cell_id).where(
        is_among(connection, measurements.c.cell_id, cell_ids),
        measurements.c.accepted,
        is_one_of(measurements.c.quality, COUNTED),
    )
    return {*connection.execute(query.distinct()).scalars()}


def end_by_cell(connection: Connection, cell_ids: Collection[CellId]) -> dict[CellId, str]:
    """Return how the last job of cells ended, in words."""
    last = (
        sa.select(sa.func.max(jobs.c.job_id))
        .where(is_among(connection, jobs.c.cell_id, cell_ids), jobs.c.state == JobState.FINISHED)
        .group_by(jobs.c.cell_id)
    )
    query = sa.select(jobs.c.cell_id, jobs.c.outcome, jobs.c.message).where(jobs.c.job_id.in_(last))
    return {
        cell_id: message or ("no measurement counts" if outcome == Outcome.SUCCEEDED else str(outcome))
        for cell_id, outcome, message in connection.execute(query)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CellWork:
    """What a cell of any version runs, and where."""

    device_id: DeviceId
    harness: str
    #: Its name; None where the harness runs no model.
    variant: str | None
    backend: str
    settings: frozenset[tuple[str, SettingValue]]
    replica: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedVersion:
    """A stored cell, and the versions of its files."""

    cell_id: CellId
    #: None where the harness runs no model.
    variant: Digest | None
    program: Digest


def last_queued(
    connection: Connection, standing_id: int, device_ids: Collection[DeviceId]
) -> dict[CellWork, QueuedVersion]:
    """Return the cells of a standing matrix on some devices, as each was last queued."""
    query = (
        sa.select(
            cells,
            programs.c.harness,
            programs.c.digest.label("program"),
            variants.c.name.label("variant_name"),
            variants.c.digest.label("variant"),
        )
        .join_from(standing_cells, cells, _IS_QUEUED_CELL)
        .join(programs, programs.c.program_id == cells.c.program_id)
        .outerjoin(variants, variants.c.variant_id == cells.c.variant_id)
        .where(
            standing_cells.c.standing_id == standing_id, is_among(connection, cells.c.device_id, device_ids)
        )
        .order_by(standing_cells.c.matrix_id)
    )
    return {
        CellWork(
            device_id=row.device_id,
            harness=row.harness,
            variant=row.variant_name,
            backend=row.backend,
            settings=frozenset(row.settings.items()),
            replica=row.replica,
        ): QueuedVersion(cell_id=row.cell_id, variant=row.variant, program=row.program)
        for row in connection.execute(query)
    }


def builds_of_cells(connection: Connection, cell_ids: Collection[CellId]) -> dict[CellId, str]:
    """Return the system build with which each of some cells last ran; one that never ran is missing."""
    last = (
        sa.select(jobs.c.cell_id, sa.func.max(attempts.c.attempt_id).label("attempt_id"))
        .join_from(jobs, attempts, attempts.c.job_id == jobs.c.job_id)
        .where(is_among(connection, jobs.c.cell_id, cell_ids))
        .group_by(jobs.c.cell_id)
        .subquery()
    )
    build = device_facts.c.facts["build_fingerprint"].as_string().label("build")
    query = (
        sa.select(last.c.cell_id, build)
        .join_from(last, attempts, attempts.c.attempt_id == last.c.attempt_id)
        .join(device_facts, device_facts.c.facts_id == attempts.c.facts_id)
    )
    rows = connection.execute(query)
    return {CellId(cell_id): build for cell_id, build in rows if build is not None}
