"""When an access token was last used, and the only host that a join token is for."""

import sqlalchemy as sa
from alembic import op

revision = "0107"
down_revision = "0106"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("access_tokens", sa.Column("last_used_at", sa.BigInteger(), nullable=True))
    op.add_column("join_tokens", sa.Column("host", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("join_tokens", "host")
    op.drop_column("access_tokens", "last_used_at")
