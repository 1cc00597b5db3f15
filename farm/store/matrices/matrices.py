"""Matrices and their cells."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.idempotency_key import IdempotencyKey
from farm.core.base.ids import CellId, DeviceId, MatrixId, VariantId
from farm.core.base.setting_values import SettingValue
from farm.core.errors import NotFound
from farm.database.bulk import insert_rows, is_among
from farm.database.tables import cells, matrices, variants


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A matrix's row."""

    matrix_id: MatrixId
    name: str
    harness: str
    spec: Mapping[str, Any]
    rounds: int
    seed: int
    rejected_count: int
    #: The matrix that this one reruns.
    rerun_of: MatrixId | None
    #: The submitting actor, as in events.
    submitted_by: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """A cell that gets jobs."""

    cell_id: CellId
    matrix_id: MatrixId
    #: Its index in the expansion, from 0.
    index: int
    device_id: DeviceId
    #: None, as name and model are, if the harness runs no model.
    variant_id: VariantId | None
    variant_name: str | None
    model: str | None
    program_id: int
    backend: str
    settings: Mapping[str, SettingValue]
    replica: int
    label: str
    baseline_index: int | None


class NewCell(NamedTuple):
    """A cell to be stored; a plain tuple, because there may be a million."""

    cell_index: int
    device_id: DeviceId
    variant_id: VariantId | None
    program_id: int
    backend: str
    settings: Mapping[str, SettingValue]
    replica: int
    label: str
    baseline_index: int | None


def add_matrix(
    connection: Connection,
    *,
    name: str,
    harness: str,
    spec: Mapping[str, Any],
    rounds: int,
    seed: int,
    rejected_count: int,
    rerun_of: MatrixId | None = None,
    submitted_by: str,
    request: IdempotencyKey | None = None,
    now: datetime,
) -> MatrixId:
    """Add a matrix; its cells and jobs, or its job template, follow in the same transaction."""
    inserted = connection.execute(
        matrices.insert()
        .values(
            name=name,
            harness=harness,
            spec=dict(spec),
            rounds=rounds,
            seed=seed,
            rejected_count=rejected_count,
            rerun_of=rerun_of,
            submitted_by=submitted_by,
            created_at=now,
            request_key=None if request is None else request.key,
            request_digest=None if request is None else request.digest,
        )
        .returning(matrices.c.matrix_id)
    )
    return MatrixId(inserted.scalar_one())


def add_cells(connection: Connection, matrix_id: MatrixId, rows: Sequence[NewCell]) -> None:
    """Add cells of a matrix by one insert; existing ones stay unchanged."""
    same = {"matrix_id": matrix_id}
    insert_rows(connection, cells, NewCell._fields, rows, same=same, unless=("matrix_id", "cell_index"))


def cell_ids(connection: Connection, matrix_id: MatrixId, indexes: Collection[int]) -> dict[int, CellId]:
    """Return cell ids of a matrix by index."""
    query = sa.select(cells.c.cell_index, cells.c.cell_id).where(
        cells.c.matrix_id == matrix_id, is_among(connection, cells.c.cell_index, indexes)
    )
    return {row.cell_index: row.cell_id for row in connection.execute(query)}


def get_matrix(connection: Connection, matrix_id: MatrixId) -> Matrix:
    """Return a matrix by its id.

    Raises:
        NotFound: there is none.
    """
    matrix = find_matrix(connection, matrix_id)
    if matrix is None:
        raise NotFound(f"there is no matrix {matrix_id}", hint="`farm matrix list` shows them all")
    return matrix


def find_matrix(connection: Connection, matrix_id: MatrixId) -> Matrix | None:
    """Return a matrix, or None."""
    row = connection.execute(sa.select(matrices).where(matrices.c.matrix_id == matrix_id)).one_or_none()
    return None if row is None else _matrix(row)


class Submission(NamedTuple):
    """The matrix created by a request with an idempotency key."""

    matrix_id: MatrixId
    #: The digest of the request's body.
    digest: str


def find_submission(connection: Connection, key: str, submitted_by: str) -> Submission | None:
    """Return the submission of an actor with a key, or None."""
    query = sa.select(matrices.c.matrix_id, matrices.c.request_digest).where(
        matrices.c.request_key == key, matrices.c.submitted_by == submitted_by
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else Submission(MatrixId(row.matrix_id), row.request_digest)


def list_matrices(connection: Connection) -> list[Matrix]:
    """Return all matrices, newest first."""
    return [_matrix(row) for row in connection.execute(sa.select(matrices).order_by(sa.desc("matrix_id")))]


def _matrix(row: sa.Row[Any]) -> Matrix:
    return Matrix(
        matrix_id=row.matrix_id,
        name=row.name,
        harness=row.harness,
        spec=row.spec,
        rounds=row.rounds,
        seed=row.seed,
        rejected_count=row.rejected_count,
        rerun_of=row.rerun_of,
        submitted_by=row.submitted_by,
        created_at=row.created_at,
    )


def cell_counts(connection: Connection) -> dict[MatrixId, int]:
    """Return the number of stored cells by matrix; matrices without cells are missing."""
    query = sa.select(cells.c.matrix_id, sa.func.count().label("cell_count")).group_by(cells.c.matrix_id)
    return {row.matrix_id: row.cell_count for row in connection.execute(query)}


def count_cells(
    connection: Connection, matrix_id: MatrixId, device_ids: Collection[DeviceId] | None = None
) -> int:
    """Count the stored cells of a matrix, in total or on some devices."""
    query = sa.select(sa.func.count()).select_from(cells).where(cells.c.matrix_id == matrix_id)
    if device_ids is not None:
        query = query.where(cells.c.device_id.in_(device_ids))
    return connection.execute(query).scalar_one()


def list_cells(
    connection: Connection, matrix_id: MatrixId, *, device_id: DeviceId | None = None
) -> list[CellRow]:
    """Return the cells of a matrix, or those on one device, by index."""
    query = cells_with_models().where(cells.c.matrix_id == matrix_id).order_by(cells.c.cell_index)
    if device_id is not None:
        query = query.where(cells.c.device_id == device_id)
    return [cell_of(row) for row in connection.execute(query)]


def page_of_cells(connection: Connection, matrix_id: MatrixId, *, after: int, limit: int) -> list[CellRow]:
    """Return up to `limit` cells of a matrix whose index is above `after`, by index."""
    query = (
        cells_with_models()
        .where(cells.c.matrix_id == matrix_id, cells.c.cell_index > after)
        .order_by(cells.c.cell_index)
        .limit(limit)
    )
    return [cell_of(row) for row in connection.execute(query)]


def cells_at(connection: Connection, matrix_id: MatrixId, indexes: Collection[int]) -> list[CellRow]:
    """Return cells of a matrix by their indexes; cells that are not stored yet are missing."""
    query = cells_with_models().where(
        cells.c.matrix_id == matrix_id, is_among(connection, cells.c.cell_index, indexes)
    )
    return [cell_of(row) for row in connection.execute(query)]


def labels_by_index(connection: Connection, matrix_id: MatrixId, indexes: Collection[int]) -> dict[int, str]:
    """Return labels of cells of a matrix by index."""
    query = sa.select(cells.c.cell_index, cells.c.label).where(
        cells.c.matrix_id == matrix_id, cells.c.cell_index.in_(indexes)
    )
    return {row.cell_index: row.label for row in connection.execute(query)}


def labels_by_cell(connection: Connection, cell_ids: Collection[CellId]) -> dict[CellId, str]:
    """Return labels of cells by id."""
    query = sa.select(cells.c.cell_id, cells.c.label).where(cells.c.cell_id.in_(cell_ids))
    return {row.cell_id: row.label for row in connection.execute(query)}


def get_cell(connection: Connection, cell_id: CellId) -> CellRow:
    """Return a cell that exists: jobs refer to it by a foreign key."""
    return cell_of(connection.execute(cells_with_models().where(cells.c.cell_id == cell_id)).one())


def find_cell(connection: Connection, cell_id: CellId) -> CellRow | None:
    """Return a cell, or None."""
    row = connection.execute(cells_with_models().where(cells.c.cell_id == cell_id)).one_or_none()
    return None if row is None else cell_of(row)


@cache
def cells_with_models() -> sa.Select[Any]:
    """Return the query of all cells, each with name and model of its variant, if it has one."""
    return sa.select(cells, variants.c.name.label("variant_name"), variants.c.model).outerjoin(variants)


def cell_of(row: sa.Row[Any]) -> CellRow:
    """Return the cell of a row with all columns of `cells_with_models`."""
    return CellRow(
        cell_id=row.cell_id,
        matrix_id=row.matrix_id,
        index=row.cell_index,
        device_id=row.device_id,
        variant_id=row.variant_id,
        variant_name=row.variant_name,
        model=row.model,
        program_id=row.program_id,
        backend=row.backend,
        settings=row.settings,
        replica=row.replica,
        label=row.label,
        baseline_index=row.baseline_index,
    )
