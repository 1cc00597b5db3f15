"""Who registered a variant: its name stays with them."""

import sqlalchemy as sa
from alembic import op

revision = "0106"
down_revision = "0105"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("variants", sa.Column("registered_by", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("variants", "registered_by")
