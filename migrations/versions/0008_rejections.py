"""Cells that get no jobs are kept so many in a row, and read page by page: a matrix may have a million of them."""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_PAGE = 1000
_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MATRICES = sa.table(
    "matrices",
    sa.column("matrix_id", sa.BigInteger),
    sa.column("rejected", sa.JSON),
    sa.column("rejected_count", sa.Integer),
)
_REJECTIONS = sa.table(
    "rejections",
    sa.column("matrix_id", sa.BigInteger),
    sa.column("first_index", sa.Integer),
    sa.column("cells", sa.JSON),
)
_FIELDS = ("device_id", "label", "reason")


def upgrade() -> None:
    op.create_table(
        "rejections",
        sa.Column("matrix_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("first_index", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("cells", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_rejections_matrix_id")),
        sa.PrimaryKeyConstraint("matrix_id", "first_index", name=op.f("pk_rejections")),
    )
    op.add_column("matrices", sa.Column("rejected_count", sa.Integer(), server_default="0", nullable=False))
    for matrix_id in _matrix_ids():
        _divide(matrix_id)
    op.drop_column("matrices", "rejected")


def downgrade() -> None:
    op.add_column("matrices", sa.Column("rejected", sa.JSON(), server_default="[]", nullable=False))
    for matrix_id in _matrix_ids():
        _join(matrix_id)
    op.drop_column("matrices", "rejected_count")
    op.drop_table("rejections")


def _matrix_ids() -> Iterator[int]:
    """One list is in memory at a time."""
    yield from list(op.get_bind().execute(sa.select(_MATRICES.c.matrix_id)).scalars())


def _divide(matrix_id: int) -> None:
    own = _MATRICES.c.matrix_id == matrix_id
    rejected = op.get_bind().execute(sa.select(_MATRICES.c.rejected).where(own)).scalar_one()
    for first in range(0, len(rejected), _PAGE):
        cells = [[each[field] for field in _FIELDS] for each in rejected[first : first + _PAGE]]
        row = {"matrix_id": matrix_id, "first_index": first, "cells": cells}
        op.get_bind().execute(_REJECTIONS.insert().values(row))
    if rejected:
        op.get_bind().execute(_MATRICES.update().where(own).values(rejected_count=len(rejected)))


def _join(matrix_id: int) -> None:
    query = (
        sa.select(_REJECTIONS.c.cells)
        .where(_REJECTIONS.c.matrix_id == matrix_id)
        .order_by(_REJECTIONS.c.first_index)
    )
    pages = op.get_bind().execute(query).scalars()
    rejected = [dict(zip(_FIELDS, cell, strict=True)) for page in pages for cell in page]
    if rejected:
        own = _MATRICES.c.matrix_id == matrix_id
        op.get_bind().execute(_MATRICES.update().where(own).values(rejected=rejected))
