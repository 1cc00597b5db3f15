"""Variants and imported files since a time, and those of a person, newest first."""

from alembic import op

revision = "0118"
down_revision = "0117"
branch_labels = None
depends_on = None

_INDEXES = (
    ("variants", "created_at", "variant_id"),
    ("variants", "registered_by", "variant_id"),
    ("imports", "imported_at", "import_id"),
    ("imports", "imported_by", "import_id"),
)


def upgrade() -> None:
    for table, column, number in _INDEXES:
        op.create_index(f"ix_{table}_{column}", table, [column, number], unique=False)


def downgrade() -> None:
    for table, column, _ in reversed(_INDEXES):
        op.drop_index(f"ix_{table}_{column}", table_name=table)
