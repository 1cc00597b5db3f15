"""An operator may accept what a phone takes now: from then on it is compared with itself alone."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("devices", sa.Column("level_accepted_at", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("devices", "level_accepted_at")
