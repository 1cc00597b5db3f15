"""Whether any matrix runs a file, found without a look at every cell."""

from alembic import op

revision = "0109"
down_revision = "0108"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_cells_variant", "cells", ["variant_id"])


def downgrade() -> None:
    op.drop_index("ix_cells_variant", table_name="cells")
