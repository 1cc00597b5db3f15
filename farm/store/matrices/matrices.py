"""Matrices, their cells, and the cells that were rejected."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, IdempotencyKey, MatrixId, VariantId
from farm.core.base.setting_values import SettingValue
from farm.core.errors import NotFound
from farm.core.matrices.matrix import MatrixSpec
from farm.database.rows import find_record, insert_rows, is_among, to_record
from farm.database.tables import cells, matrices, programs, rejections, variants
from farm.database.transaction import Tx
from farm.store.devices.devices import device_labels
from farm.wire.documents.matrices.matrices import Rejection

_SPEC = TypeAdapter(MatrixSpec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A matrix's row."""

    matrix_id: MatrixId
    name: str
    harness: str
    spec: MatrixSpec
    rounds: int
    max_rounds: int | None
    seed: int
    #: Candidates of one block at most; None: a round is one block.
    block_candidates: int | None
    #: Cells with jobs, stored yet or not.
    cell_count: int
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
    #: Of its program.
    harness: str
    backend: str
    settings: Mapping[str, SettingValue]
    replica: int
    label: str
    baseline_index: int | None


@dataclass(frozen=True, slots=True)
class PlacedCell:
    """What a grid shows of a cell itself."""

    cell_id: CellId
    index: int
    device_id: DeviceId
    label: str
    replica: int


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
    tx: Tx,
    *,
    spec: MatrixSpec,
    seed: int,
    block_candidates: int | None,
    cell_count: int,
    rejected_count: int,
    rerun_of: MatrixId | None = None,
    repeated_attempt: AttemptId | None = None,
    submitted_by: str,
    idempotency: IdempotencyKey | None = None,
) -> MatrixId:
    """Add a matrix; its cells and jobs, or its job template, follow in the same transaction."""
    inserted = tx.connection.execute(
        matrices.insert()
        .values(
            name=spec.name,
            harness=spec.harness_text,
            spec=_SPEC.dump_python(spec, mode="json"),
            rounds=spec.round_range[0],
            max_rounds=spec.round_range[1],
            seed=seed,
            block_candidates=block_candidates,
            cell_count=cell_count,
            rejected_count=rejected_count,
            rerun_of=rerun_of,
            repeated_attempt=repeated_attempt,
            submitted_by=submitted_by,
            created_at=tx.now,
            request_key=None if idempotency is None else idempotency.key,
            request_digest=None if idempotency is None else idempotency.digest,
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


def get_matrix(connection: Connection, matrix_id: MatrixId, *, at: datetime | None = None) -> Matrix:
    """Return a matrix by its id.

    Raises:
        NotFound: there is none, or was none at a time.
    """
    query = sa.select(matrices).where(matrices.c.matrix_id == matrix_id)
    matrix = find_record(connection, Matrix, query)
    if matrix is None:
        raise NotFound(f"there is no matrix {matrix_id}", hint="`farm matrix list` shows them all")
    if at is not None and at < matrix.created_at:
        hint = f"it was submitted on {matrix.created_at:%Y-%m-%d %H:%M} UTC: ask for a later time"
        raise NotFound(f"matrix {matrix_id} did not exist yet at that time", hint=hint)
    return matrix


def matrices_by_id(connection: Connection, matrix_ids: Collection[MatrixId]) -> dict[MatrixId, Matrix]:
    """Return matrices by their ids; an unknown id is missing."""
    query = sa.select(matrices).where(is_among(connection, matrices.c.matrix_id, matrix_ids))
    return {row.matrix_id: to_record(Matrix, row) for row in connection.execute(query)}


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


#: The query of all cells, each with its harness, and name and model of its variant, if it has one.
CELLS_WITH_MODELS = (
    sa.select(
        cells,
        cells.c.cell_index.label("index"),
        programs.c.harness,
        variants.c.name.label("variant_name"),
        variants.c.model,
    )
    .join_from(cells, programs)
    .outerjoin(variants)
)


def list_cells(
    connection: Connection, matrix_id: MatrixId, *, device_id: DeviceId | None = None
) -> list[CellRow]:
    """Return the cells of a matrix, or those on one device, by index."""
    query = CELLS_WITH_MODELS.where(cells.c.matrix_id == matrix_id).order_by(cells.c.cell_index)
    if device_id is not None:
        query = query.where(cells.c.device_id == device_id)
    return [to_record(CellRow, row) for row in connection.execute(query)]


def page_of_cells(connection: Connection, matrix_id: MatrixId, *, after: int, limit: int) -> list[CellRow]:
    """Return up to `limit` cells of a matrix whose index is above `after`, by index."""
    query = (
        CELLS_WITH_MODELS.where(cells.c.matrix_id == matrix_id, cells.c.cell_index > after)
        .order_by(cells.c.cell_index)
        .limit(limit)
    )
    return [to_record(CellRow, row) for row in connection.execute(query).all()]


PLACED_CELLS = sa.select(
    cells.c.cell_id, cells.c.cell_index, cells.c.device_id, cells.c.label, cells.c.replica
)


def placed_cells(connection: Connection, matrix_id: MatrixId, *, after: int, limit: int) -> list[PlacedCell]:
    """Return the same cells without what they run."""
    query = (
        PLACED_CELLS.where(cells.c.matrix_id == matrix_id, cells.c.cell_index > after)
        .order_by(cells.c.cell_index)
        .limit(limit)
    )
    return [PlacedCell(*row) for row in connection.execute(query).all()]


def cells_at(connection: Connection, matrix_id: MatrixId, indexes: Collection[int]) -> list[CellRow]:
    """Return cells of a matrix by their indexes; cells that are not stored yet are missing."""
    query = CELLS_WITH_MODELS.where(
        cells.c.matrix_id == matrix_id, is_among(connection, cells.c.cell_index, indexes)
    )
    return [to_record(CellRow, row) for row in connection.execute(query)]


def cells_by_id(connection: Connection, cell_ids: Collection[CellId]) -> list[CellRow]:
    """Return cells by their ids, in the order of their indexes."""
    query = CELLS_WITH_MODELS.where(is_among(connection, cells.c.cell_id, cell_ids))
    rows = connection.execute(query.order_by(cells.c.matrix_id, cells.c.cell_index)).all()
    return [to_record(CellRow, row) for row in rows]


def planned_baselines(connection: Connection, cell_ids: Collection[CellId]) -> list[CellRow]:
    """Return the baselines that the matrices of candidates planned for them."""
    own, its = sa.alias(cells), sa.alias(cells)
    planned = (
        sa.select(its.c.cell_id)
        .join(own, sa.and_(own.c.matrix_id == its.c.matrix_id, own.c.baseline_index == its.c.cell_index))
        .where(is_among(connection, own.c.cell_id, cell_ids))
    )
    query = CELLS_WITH_MODELS.where(cells.c.cell_id.in_(planned))
    return [to_record(CellRow, row) for row in connection.execute(query).all()]


def newest_matrix_at(connection: Connection, at: datetime) -> MatrixId | None:
    """Return the last matrix that was submitted by a time; None if there was none yet."""
    query = (
        sa.select(matrices.c.matrix_id)
        .where(matrices.c.created_at <= at)
        .order_by(matrices.c.created_at.desc(), matrices.c.matrix_id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


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
    row = connection.execute(CELLS_WITH_MODELS.where(cells.c.cell_id == cell_id)).one()
    return to_record(CellRow, row)


def find_cell(connection: Connection, cell_id: CellId) -> CellRow | None:
    """Return a cell, or None."""
    return find_record(connection, CellRow, CELLS_WITH_MODELS.where(cells.c.cell_id == cell_id))


#: The number of rejections in a row, and in a page.
PAGE = 1000


def add_rejections(
    connection: Connection, matrix_id: MatrixId, rejected: Sequence[tuple[DeviceId | None, str, str, str]]
) -> None:
    """Store device, label, kind and reason of each rejection."""
    rows = [
        {
            "matrix_id": matrix_id,
            "first_index": first,
            "cells": [list(cell) for cell in rejected[first : first + PAGE]],
        }
        for first in range(0, len(rejected), PAGE)
    ]
    if rows:
        connection.execute(rejections.insert(), rows)


def page_of_rejections(connection: Connection, matrix_id: MatrixId, *, after: int) -> tuple[Rejection, ...]:
    """Return the rejections with an index above `after`, up to the end of a row; none at the end."""
    first = (after + 1) // PAGE * PAGE
    query = sa.select(rejections.c.cells).where(
        rejections.c.matrix_id == matrix_id, rejections.c.first_index == first
    )
    cells = connection.execute(query).scalar_one_or_none() or []
    labels = device_labels(connection, {device_id for device_id, *_ in cells if device_id is not None})
    return tuple(
        Rejection(
            index=index,
            device_id=device_id,
            device_label=None if device_id is None else labels.get(device_id),
            label=label,
            kind=kind,
            reason=reason,
        )
        for index, (device_id, label, kind, reason) in enumerate(cells, start=first)
        if index > after
    )
