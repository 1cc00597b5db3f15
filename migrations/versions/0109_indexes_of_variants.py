"""Whether any matrix runs a file, and which file came before it under its name, found by an index."""

from alembic import op

revision = "0109"
down_revision = "0108"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_cells_variant", "cells", ["variant_id"])
    op.create_index("ix_variants_name", "variants", ["name", "variant_id"])


def downgrade() -> None:
    op.drop_index("ix_variants_name", table_name="variants")
    op.drop_index("ix_cells_variant", table_name="cells")
