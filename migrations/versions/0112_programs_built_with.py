"""What a program was built from: versions and digests of its parts."""

import sqlalchemy as sa
from alembic import op

revision = "0112"
down_revision = "0111"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("programs", sa.Column("built_with", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("programs", "built_with")
