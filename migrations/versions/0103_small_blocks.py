"""Small blocks, places in them and the order of runs; points of series; retraction; lists of matrices."""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None

_ONE_JOB = "uq_jobs_cell_id_round_block_repeat"
_ONE_JOB_BEFORE = "uq_jobs_cell_id_round_repeat"
#: Repeats of a block that 0102 counts at most, the first start included.
_STARTS_OF_A_BLOCK = 3
_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_READING = "uq_measurements_attempt_id_parser_version"
_RETRACTED = "ck_measurements_retracted_is_withdrawn"
_ALARM_KIND = "ck_alarms_kind_known"
_ALARM_KINDS = (
    "device_silent",
    "recovery_failed",
    "device_unauthorized",
    "identity_clash",
    "report_implausible",
    "reference_drift",
    "placement_changed",
    "cell_silent",
    "host_incident",
    "clock_stepped",
)


def upgrade() -> None:
    with op.batch_alter_table("matrices", schema=None) as batch_op:
        batch_op.add_column(sa.Column("block_candidates", sa.Integer(), nullable=True))
    # SQLite copies the table, and loses the order of an index on the way.
    _drop_queue_index()
    with op.batch_alter_table("jobs", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.add_column(sa.Column("block", sa.Integer(), server_default="0", nullable=False))
        batch_op.add_column(sa.Column("place", sa.Integer(), nullable=True))
        batch_op.drop_constraint(op.f(_ONE_JOB_BEFORE), type_="unique")
        batch_op.create_unique_constraint(op.f(_ONE_JOB), ["cell_id", "round", "block", "repeat"])
    _create_queue_index()
    with op.batch_alter_table("measurements", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.add_column(sa.Column("block", sa.Integer(), server_default="0", nullable=False))
        batch_op.add_column(sa.Column("boot_id", sa.Text()))
        batch_op.add_column(sa.Column("start_uptime_s", sa.Double()))
        batch_op.add_column(sa.Column("duration_s", sa.Double()))
        batch_op.add_column(sa.Column("retraction", sa.Integer(), server_default="0", nullable=False))
        batch_op.add_column(sa.Column("retracted_by", sa.Text()))
        batch_op.create_check_constraint(
            op.f(_RETRACTED), "retracted_by IS NULL OR (retraction > 0 AND quality = 'withdrawn')"
        )
        batch_op.drop_constraint(op.f(_READING), type_="unique")
        batch_op.create_unique_constraint(
            op.f(f"{_READING}_retraction"), ["attempt_id", "parser_version", "retraction"]
        )
    _replace_alarm_kinds((*_ALARM_KINDS, "order_shows"))
    op.create_index("ix_matrices_created_at", "matrices", ["created_at", "matrix_id"], unique=False)
    op.create_index("ix_matrices_submitted_by", "matrices", ["submitted_by", "matrix_id"], unique=False)
    op.create_index("ix_series_model", "series", ["model", "series_id"], unique=False)
    op.create_index("ix_series_device_id", "series", ["device_id", "series_id"], unique=False)
    _create_points()
    _create_stale_points()
    _create_standing_matrices()


def _create_points() -> None:
    op.create_table(
        "points",
        sa.Column("cell_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("matrix_id", _BIG_ID, nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("series_id", _BIG_ID, nullable=False),
        sa.Column("baseline_series_id", _BIG_ID, nullable=True),
        sa.Column("replica", sa.Integer(), nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=False),
        sa.Column("baseline_slot", sa.BigInteger(), nullable=True),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("left_out", sa.Integer(), nullable=False),
        sa.Column("time_ns", sa.Double(), nullable=True),
        sa.Column("se_time", sa.Double(), nullable=True),
        sa.Column("baseline_ns", sa.Double(), nullable=True),
        sa.Column("se_speedup", sa.Double(), nullable=True),
        sa.Column("facts_id", _BIG_ID, nullable=True),
        sa.Column("control_level", sa.Integer(), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("newest", sa.Boolean(), nullable=False),
        sa.CheckConstraint("(rounds > 0) = (time_ns IS NOT NULL)", name=op.f("ck_points_time_of_rounds")),
        sa.CheckConstraint(
            "(baseline_series_id IS NULL) = (baseline_slot IS NULL)"
            " AND (baseline_ns IS NOT NULL) = (rounds > 0 AND baseline_slot IS NOT NULL)",
            name=op.f("ck_points_baseline_of_compared"),
        ),
        sa.ForeignKeyConstraint(
            ["baseline_series_id"], ["series.series_id"], name=op.f("fk_points_baseline_series_id")
        ),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.cell_id"], name=op.f("fk_points_cell_id")),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_points_device_id")),
        sa.ForeignKeyConstraint(["facts_id"], ["device_facts.facts_id"], name=op.f("fk_points_facts_id")),
        sa.ForeignKeyConstraint(["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_points_matrix_id")),
        sa.ForeignKeyConstraint(["series_id"], ["series.series_id"], name=op.f("fk_points_series_id")),
        sa.PrimaryKeyConstraint("cell_id", name=op.f("pk_points")),
    )
    op.create_index("ix_points_series", "points", ["series_id", "matrix_id"], unique=False)
    op.create_index("ix_points_session", "points", ["matrix_id", "device_id"], unique=False)
    op.create_index(
        "uq_points_newest",
        "points",
        ["device_id", "baseline_series_id", "series_id", "replica"],
        unique=True,
        sqlite_where=sa.text("newest"),
        postgresql_where=sa.text("newest"),
    )
    op.create_index(
        "ix_points_newest_of_slot",
        "points",
        ["slot", "baseline_slot", "device_id"],
        unique=False,
        sqlite_where=sa.text("newest"),
        postgresql_where=sa.text("newest"),
    )


def _create_stale_points() -> None:
    op.create_table(
        "stale_points",
        sa.Column("matrix_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("marked_at", sa.BigInteger(), nullable=False),
        sa.Column("last_marked_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_stale_points_device_id")),
        sa.ForeignKeyConstraint(
            ["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_stale_points_matrix_id")
        ),
        sa.PrimaryKeyConstraint("matrix_id", "device_id", name=op.f("pk_stale_points")),
    )
    op.create_table(
        "point_progress",
        sa.Column("progress_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("measurement_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("progress_id = 1", name=op.f("ck_point_progress_one_row")),
        sa.PrimaryKeyConstraint("progress_id", name=op.f("pk_point_progress")),
    )
    # All sessions of the past: their points are computed by the farm that starts on this schema.
    op.execute(
        "INSERT INTO stale_points (matrix_id, device_id, version, marked_at, last_marked_at)"
        " SELECT DISTINCT matrix_id, device_id, 0, 0, 0 FROM cells"
    )
    # A new farm has no row: backups are restored into databases without any.
    op.execute(
        "INSERT INTO point_progress (progress_id, measurement_id, version)"
        " SELECT 1, MAX(measurement_id), 0 FROM measurements HAVING COUNT(*) > 0"
    )


def _create_standing_matrices() -> None:
    op.create_table(
        "standing_matrices",
        sa.Column("standing_id", _BIG_ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("submitted_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("next_due_at", sa.BigInteger(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("standing_id", name=op.f("pk_standing_matrices")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_standing_matrices_name",
        "standing_matrices",
        ["name"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "standing_cells",
        sa.Column("standing_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("version_digest", sa.Text(), nullable=False),
        sa.Column("matrix_id", _BIG_ID, nullable=False),
        sa.Column("cell_index", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_standing_cells_matrix_id")
        ),
        sa.ForeignKeyConstraint(
            ["standing_id"], ["standing_matrices.standing_id"], name=op.f("fk_standing_cells_standing_id")
        ),
        sa.PrimaryKeyConstraint("standing_id", "version_digest", name=op.f("pk_standing_cells")),
    )


def downgrade() -> None:
    op.drop_table("standing_cells")
    op.drop_table("standing_matrices")
    op.drop_table("point_progress")
    op.drop_table("stale_points")
    op.drop_table("points")
    op.drop_index("ix_series_device_id", table_name="series")
    op.drop_index("ix_series_model", table_name="series")
    op.drop_index("ix_matrices_submitted_by", table_name="matrices")
    op.drop_index("ix_matrices_created_at", table_name="matrices")
    # The older schema has one reading for each parser version: the last one, so that what was retracted stays
    # withdrawn.
    op.execute(
        "DELETE FROM measurements WHERE EXISTS (SELECT 1 FROM measurements AS later"
        " WHERE later.attempt_id = measurements.attempt_id"
        " AND later.parser_version = measurements.parser_version"
        " AND later.retraction > measurements.retraction)"
    )
    # A cell had one job for a round and repeat: the starts of a baseline in one round become repeats, and so
    # do those of their candidates, so that the same pairs are formed.
    for table in ("jobs", "measurements"):
        op.execute(f"UPDATE {table} SET repeat = repeat + {_STARTS_OF_A_BLOCK} * block WHERE block > 0")
    # What is not queued yet was planned in blocks, which the older farm would count in another order.
    in_blocks = "matrix_id IN (SELECT matrix_id FROM matrices WHERE block_candidates IS NOT NULL)"
    now = "(SELECT max(created_at) FROM jobs)"
    op.execute(f"UPDATE lazy_expansions SET cancelled_at = {now} WHERE cancelled_at IS NULL AND {in_blocks}")
    op.execute(f"DELETE FROM job_templates WHERE {in_blocks}")
    op.execute(f"UPDATE round_growths SET finished_at = {now} WHERE finished_at IS NULL AND {in_blocks}")
    with op.batch_alter_table("measurements", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f(f"{_READING}_retraction"), type_="unique")
        batch_op.create_unique_constraint(op.f(_READING), ["attempt_id", "parser_version"])
        batch_op.drop_constraint(op.f(_RETRACTED), type_="check")
        for name in ("retracted_by", "retraction", "duration_s", "start_uptime_s", "boot_id", "block"):
            batch_op.drop_column(name)
    # The older schema has no word for it.
    op.execute("DELETE FROM alarms WHERE kind = 'order_shows'")
    _replace_alarm_kinds(_ALARM_KINDS)
    _drop_queue_index()
    with op.batch_alter_table("jobs", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f(_ONE_JOB), type_="unique")
        batch_op.create_unique_constraint(op.f(_ONE_JOB_BEFORE), ["cell_id", "round", "repeat"])
        batch_op.drop_column("place")
        batch_op.drop_column("block")
    _create_queue_index()
    with op.batch_alter_table("matrices", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_column("block_candidates")


def _drop_queue_index() -> None:
    queued = sa.text("state = 'queued'")
    op.drop_index("ix_jobs_queue", table_name="jobs", sqlite_where=queued, postgresql_where=queued)


def _create_queue_index() -> None:
    op.create_index(
        "ix_jobs_queue",
        "jobs",
        ["device_id", sa.literal_column("priority DESC"), "virtual_time", "job_id"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )


def _replace_alarm_kinds(kinds: tuple[str, ...]) -> None:
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    with op.batch_alter_table("alarms", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f(_ALARM_KIND), type_="check")
        batch_op.create_check_constraint(op.f(_ALARM_KIND), f"kind IN ({listed})")
