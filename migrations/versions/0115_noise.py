"""Causes of changes: what nothing explains is unknown, what soon went back is noise; alarms since a time."""

import sqlalchemy as sa
from alembic import op

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None

_KNOWN = "ck_changes_cause_known"
_CAUSES = ("file", "program", "os", "device", "drift", "method")


def upgrade() -> None:
    op.create_index("ix_alarms_raised_at", "alarms", ["raised_at", "alarm_id"], unique=False)
    with op.batch_alter_table("changes", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.add_column(sa.Column("is_passing", sa.Boolean(), nullable=False, server_default=sa.false()))
        batch_op.drop_constraint(op.f(_KNOWN), type_="check")
        batch_op.create_check_constraint(op.f(_KNOWN), _listed(*_CAUSES, "unknown", "noise"))
        batch_op.create_check_constraint(op.f("ck_changes_noise_follows"), "cause <> 'noise'")
        batch_op.create_check_constraint(
            op.f("ck_changes_passing_unexplained"), "NOT is_passing OR cause = 'unknown'"
        )
    with op.batch_alter_table("changes", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.alter_column("is_passing", server_default=None)


def downgrade() -> None:
    # The older schema has no word for it, but one change of a cause at a place; a search finds the cause again.
    op.execute(
        "UPDATE changes SET is_passing = false, cause = CASE WHEN EXISTS (SELECT 1 FROM changes AS other"
        " WHERE other.first_cell_id = changes.first_cell_id AND other.is_slower = changes.is_slower"
        " AND other.cause = 'device') THEN 'drift' ELSE 'device' END WHERE cause = 'unknown'"
    )
    with op.batch_alter_table("changes", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f("ck_changes_passing_unexplained"), type_="check")
        batch_op.drop_constraint(op.f("ck_changes_noise_follows"), type_="check")
        batch_op.drop_constraint(op.f(_KNOWN), type_="check")
        batch_op.create_check_constraint(op.f(_KNOWN), _listed(*_CAUSES))
        batch_op.drop_column("is_passing")
    op.drop_index("ix_alarms_raised_at", table_name="alarms")


def _listed(*causes: str) -> str:
    return f"cause IN ({', '.join(map(repr, causes))})"
