"""A matrix has its number of cells: what is not queued yet tells of starts, and a baseline has several."""

import json
import zlib

import sqlalchemy as sa
from alembic import op

revision = "0121"
down_revision = "0120"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("matrices", sa.Column("cell_count", sa.Integer(), nullable=False, server_default="0"))
    # Cells are numbered from 0 without gaps, but not all cells of a matrix that is still expanded have rows.
    op.execute(
        "UPDATE matrices SET cell_count = (SELECT coalesce(max(cell_index) + 1, 0) FROM cells"
        " WHERE cells.matrix_id = matrices.matrix_id)"
    )
    connection = op.get_bind()
    count = sa.text("UPDATE matrices SET cell_count = :cells WHERE matrix_id = :matrix")
    for matrix_id, body in connection.execute(sa.text("SELECT matrix_id, body FROM job_templates")).all():
        template = json.loads(zlib.decompress(body))
        cells = sum(
            len(template["slots"] if part["slots"] is None else part["slots"]) for part in template["parts"]
        )
        connection.execute(count, {"cells": cells, "matrix": matrix_id})


def downgrade() -> None:
    op.drop_column("matrices", "cell_count")
