"""A name of variants means the file to which it was given last, which need not be the newest one."""

import sqlalchemy as sa
from alembic import op

revision = "0120"
down_revision = "0119"
branch_labels = None
depends_on = None


def upgrade() -> None:
    order = sa.Column("name_order", sa.BigInteger(), nullable=False, server_default="0")
    op.add_column("variants", order)
    op.execute("UPDATE variants SET name_order = variant_id")
    op.drop_index("ix_variants_name", table_name="variants")
    op.create_index("ix_variants_name", "variants", ["name", "name_order"], unique=True)


def downgrade() -> None:
    op.drop_index("ix_variants_name", table_name="variants")
    op.create_index("ix_variants_name", "variants", ["name", "variant_id"], unique=False)
    op.drop_column("variants", "name_order")
