"""Clock steps, ceilings and warmth of measurements; the A/A pairs of a device."""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None

_QUALITY = "ck_measurements_quality_known"
_QUALITIES = ("valid", "noisy", "throttled")
_FURTHER = (
    "unplugged",
    "uncontrolled",
    "incomplete",
    "fallback",
    "unproven",
    "coarse",
    "implausible",
    "withdrawn",
)


def _is_one_of(qualities: tuple[str, ...]) -> str:
    listed = ", ".join(f"'{quality}'" for quality in qualities)
    return f"quality IN ({listed})"


def upgrade() -> None:
    with op.batch_alter_table("measurements", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.add_column(sa.Column("clock_step_ns", sa.BigInteger(), server_default="0", nullable=False))
        batch_op.add_column(sa.Column("ceilings", sa.JSON(none_as_null=True)))
        batch_op.add_column(sa.Column("start_skin_c", sa.Double()))
        batch_op.add_column(sa.Column("start_battery_c", sa.Double()))
        batch_op.drop_constraint(op.f(_QUALITY), type_="check")
        known = (*_QUALITIES, "capped", "swapped", *_FURTHER)
        batch_op.create_check_constraint(op.f(_QUALITY), _is_one_of(known))

    with op.batch_alter_table("cells", schema=None) as batch_op:
        batch_op.create_index(
            "ix_cells_duplicates",
            ["device_id", "matrix_id"],
            unique=False,
            sqlite_where=sa.text("replica > 1"),
            postgresql_where=sa.text("replica > 1"),
        )


def downgrade() -> None:
    with op.batch_alter_table("cells", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_cells_duplicates",
            sqlite_where=sa.text("replica > 1"),
            postgresql_where=sa.text("replica > 1"),
        )

    # The older schema has no word for it, and it is not to be averaged in.
    op.execute("UPDATE measurements SET quality = 'throttled' WHERE quality IN ('capped', 'swapped')")
    with op.batch_alter_table("measurements", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f(_QUALITY), type_="check")
        batch_op.create_check_constraint(op.f(_QUALITY), _is_one_of((*_QUALITIES, *_FURTHER)))
        for name in ("start_battery_c", "start_skin_c", "ceilings", "clock_step_ns"):
            batch_op.drop_column(name)
