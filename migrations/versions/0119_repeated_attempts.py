"""Matrices that measure the number of an attempt again: histories leave them out."""

import sqlalchemy as sa
from alembic import op

revision = "0119"
down_revision = "0118"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("matrices", sa.Column("repeated_attempt", _ID, nullable=True))


def downgrade() -> None:
    op.drop_column("matrices", "repeated_attempt")
