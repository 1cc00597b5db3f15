"""The address of a host's adb server, which may be a Unix socket, in place of its port."""

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0107"
branch_labels = None
depends_on = None

_LOOPBACK = "tcp:127.0.0.1:"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("adb_address", sa.Text(), nullable=True))
    op.execute(f"UPDATE hosts SET adb_address = '{_LOOPBACK}' || adb_port WHERE adb_port IS NOT NULL")
    op.drop_column("hosts", "adb_port")


def downgrade() -> None:
    op.add_column("hosts", sa.Column("adb_port", sa.Integer(), nullable=True))
    op.execute(
        f"UPDATE hosts SET adb_port = CAST(substr(adb_address, {len(_LOOPBACK) + 1}) AS INTEGER)"
        f" WHERE adb_address LIKE '{_LOOPBACK}%'"
    )
    op.drop_column("hosts", "adb_address")
