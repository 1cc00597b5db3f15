"""Large matrices are queued in pieces: what their rows are made from, and how far that is."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "blueprints",
        sa.Column("matrix_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("variant_ids", sa.JSON(), nullable=False),
        sa.Column("program_ids", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_blueprints_matrix_id")),
        sa.PrimaryKeyConstraint("matrix_id", name=op.f("pk_blueprints")),
    )
    op.create_table(
        "unfoldings",
        sa.Column("matrix_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("unfolded", sa.Integer(), nullable=False),
        sa.Column("first_turn", sa.BigInteger(), nullable=False),
        sa.Column("last_turn", sa.BigInteger(), nullable=False),
        sa.Column("cancelled_at", sa.BigInteger()),
        sa.CheckConstraint("unfolded >= 0 AND unfolded < jobs", name=op.f("ck_unfoldings_unfolded_some")),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_unfoldings_device_id")),
        sa.ForeignKeyConstraint(["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_unfoldings_matrix_id")),
        sa.PrimaryKeyConstraint("matrix_id", "device_id", name=op.f("pk_unfoldings")),
    )
    is_open = sa.text("cancelled_at IS NULL")
    op.create_index(
        "ix_unfoldings_next",
        "unfoldings",
        ["matrix_id", "unfolded", "device_id"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.drop_index("ix_jobs_matrix_id", "jobs")
    op.create_index("ix_jobs_matrix_id", "jobs", ["matrix_id", "state", "job_id"])
    op.create_index("ix_cells_of_device", "cells", ["matrix_id", "device_id", "cell_index"])
    through_device = sa.text("outcome = 'inconclusive' AND blame = 'device'")
    op.create_index(
        "ix_attempts_lost_by_device",
        "attempts",
        ["job_id"],
        sqlite_where=through_device,
        postgresql_where=through_device,
    )


def downgrade() -> None:
    op.drop_index("ix_attempts_lost_by_device", "attempts")
    op.drop_index("ix_cells_of_device", "cells")
    op.drop_index("ix_jobs_matrix_id", "jobs")
    op.create_index("ix_jobs_matrix_id", "jobs", ["matrix_id", "state"])
    # What was not queued yet never will be: an older release knows nothing of it.
    op.drop_index("ix_unfoldings_next", table_name="unfoldings")
    op.drop_table("unfoldings")
    op.drop_table("blueprints")
