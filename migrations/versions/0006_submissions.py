"""A submission that is sent again under its key is the same one: which key each matrix was submitted under."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("matrices", sa.Column("request_key", sa.Text()))
    op.add_column("matrices", sa.Column("request_digest", sa.Text()))
    has_key = sa.text("request_key IS NOT NULL")
    op.create_index(
        "uq_matrices_one_per_request",
        "matrices",
        ["submitted_by", "request_key"],
        unique=True,
        sqlite_where=has_key,
        postgresql_where=has_key,
    )


def downgrade() -> None:
    op.drop_index("uq_matrices_one_per_request", table_name="matrices")
    op.drop_column("matrices", "request_digest")
    op.drop_column("matrices", "request_key")
