"""Who stored an artifact: the bytes count towards their quota."""

import sqlalchemy as sa
from alembic import op

revision = "0110"
down_revision = "0109"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("artifacts", sa.Column("stored_by", sa.Text(), nullable=True))
    op.create_index("ix_artifacts_stored_by", "artifacts", ["stored_by"])


def downgrade() -> None:
    op.drop_index("ix_artifacts_stored_by", table_name="artifacts")
    op.drop_column("artifacts", "stored_by")
