"""Clock steps, ceilings, energy and warmth of measurements; A/A pairs of a device; matrices that grow, and looks."""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
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
        batch_op.add_column(sa.Column("energy", sa.JSON(none_as_null=True)))
        batch_op.add_column(sa.Column("start_skin_c", sa.Double()))
        batch_op.add_column(sa.Column("start_battery_c", sa.Double()))
        batch_op.drop_constraint(op.f(_QUALITY), type_="check")
        known = (*_QUALITIES, "capped", "swapped", *_FURTHER)
        batch_op.create_check_constraint(op.f(_QUALITY), _is_one_of(known))
    with op.batch_alter_table("matrices", schema=None) as batch_op:
        batch_op.add_column(sa.Column("max_rounds", sa.Integer(), nullable=True))
        batch_op.create_index(
            "ix_matrices_growing",
            ["matrix_id"],
            unique=False,
            sqlite_where=sa.text("max_rounds > rounds"),
            postgresql_where=sa.text("max_rounds > rounds"),
        )
    with op.batch_alter_table("cells", schema=None) as batch_op:
        batch_op.create_index(
            "ix_cells_duplicates",
            ["device_id", "matrix_id"],
            unique=False,
            sqlite_where=sa.text("replica > 1"),
            postgresql_where=sa.text("replica > 1"),
        )
    _create_round_growths()
    _create_looks()


def _create_round_growths() -> None:
    op.create_table(
        "round_growths",
        sa.Column("matrix_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("first_round", sa.Integer(), nullable=False),
        sa.Column("last_round", sa.Integer(), nullable=False),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("queued_jobs", sa.Integer(), nullable=False),
        sa.Column("virtual_time", sa.BigInteger(), nullable=False),
        sa.Column("looked_index", sa.Integer(), nullable=False),
        sa.Column("missing_rounds", sa.Integer(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "queued_jobs >= 0 AND queued_jobs <= jobs",
            name=op.f("ck_round_growths_queued_no_more_than_all"),
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name=op.f("fk_round_growths_device_id")
        ),
        sa.ForeignKeyConstraint(
            ["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_round_growths_matrix_id")
        ),
        sa.PrimaryKeyConstraint("matrix_id", "device_id", name=op.f("pk_round_growths")),
    )
    op.create_index(
        "ix_round_growths_open",
        "round_growths",
        ["matrix_id", "device_id"],
        unique=False,
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )


def _create_looks() -> None:
    op.create_table(
        "looks",
        sa.Column("cell_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("usable", sa.Integer(), nullable=False),
        sa.Column("level", sa.Double(), nullable=True),
        sa.Column("spent", sa.Double(), nullable=True),
        sa.Column("ratio", sa.Double(), nullable=True),
        sa.Column("ci_low", sa.Double(), nullable=True),
        sa.Column("ci_high", sa.Double(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("stopped", sa.Text(), nullable=True),
        sa.Column("taken_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "stopped IN ('decided', 'narrow', 'last', 'unusable')", name=op.f("ck_looks_stopped_known")
        ),
        sa.CheckConstraint("(level IS NULL) = (spent IS NULL)", name=op.f("ck_looks_level_is_spent")),
        sa.CheckConstraint("level IS NOT NULL OR stopped IS NOT NULL", name=op.f("ck_looks_look_or_stop")),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.cell_id"], name=op.f("fk_looks_cell_id")),
        sa.PrimaryKeyConstraint("cell_id", "number", name=op.f("pk_looks")),
    )


def downgrade() -> None:
    op.drop_table("looks")
    op.drop_index(
        "ix_round_growths_open",
        table_name="round_growths",
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.drop_table("round_growths")
    with op.batch_alter_table("matrices", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_index(
            "ix_matrices_growing",
            sqlite_where=sa.text("max_rounds > rounds"),
            postgresql_where=sa.text("max_rounds > rounds"),
        )
        batch_op.drop_column("max_rounds")
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
        for name in ("energy", "start_battery_c", "start_skin_c", "ceilings", "clock_step_ns"):
            batch_op.drop_column(name)
