"""What is known of phones: placement and controls of measurements, golden runs, alarms, recovery."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KINDS = (
    "device_silent",
    "recovery_failed",
    "device_unauthorized",
    "identity_clash",
    "band_drift",
    "placement_changed",
    "cell_silent",
    "host_trouble",
)
VERDICTS = ("unfit", "learning", "in_band", "slow", "fast", "drifted")
QUALITIES = ("valid", "noisy", "throttled", "short", "fallback", "unproven", "coarse")
MORE_QUALITIES = (*QUALITIES[:3], "unplugged", "uncontrolled", *QUALITIES[3:], "withdrawn")
OF_ATTEMPT = "uq_measurements_attempt_id"
BY_PARSER = "uq_measurements_attempt_id_parser_version"


def upgrade() -> None:
    for column in (
        sa.Column("placement", sa.JSON()),
        sa.Column("notices", sa.JSON()),
        sa.Column("controls", sa.JSON()),
        sa.Column("control_level", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("cpu_s", sa.Double()),
        sa.Column("superseded_at", sa.BigInteger()),
    ):
        op.add_column("measurements", column)
    _unique(OF_ATTEMPT, BY_PARSER, ["attempt_id", "parser_version"])
    _know_qualities(MORE_QUALITIES)
    op.add_column("devices", sa.Column("recovery", sa.JSON()))
    op.add_column("devices", sa.Column("setup", sa.JSON()))
    _errand_kinds(("identify", "clean", "check_settings", "set_up", "undo_settings"))
    _golden_runs()
    _alarms()
    op.create_index("ix_jobs_checks", "jobs", ["device_id", "job_id"], **only("kind = 'check'"))


def _unique(old: str, new: str, columns: list[str]) -> None:
    with op.batch_alter_table("measurements", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.drop_constraint(old, type_="unique")
        batch.create_unique_constraint(new, columns)


def _know_qualities(qualities: tuple[str, ...]) -> None:
    known = ", ".join(f"'{quality}'" for quality in qualities)
    with op.batch_alter_table("measurements", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.drop_constraint(op.f("ck_measurements_quality_known"), type_="check")
        batch.create_check_constraint(op.f("ck_measurements_quality_known"), f"quality IN ({known})")


def _errand_kinds(kinds: tuple[str, ...]) -> None:
    known = ", ".join(f"'{kind}'" for kind in kinds)
    name = op.f("ck_errands_kind_known")
    with op.batch_alter_table("errands", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.drop_constraint(name, type_="check")
        batch.create_check_constraint(name, f"kind IN ({known})")


def _golden_runs() -> None:
    verdicts = ", ".join(f"'{verdict}'" for verdict in VERDICTS)
    op.create_table(
        "golden_runs",
        sa.Column("golden_id", BIG_ID, nullable=False),
        sa.Column("job_id", BIG_ID, nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("band_key", sa.Text(), nullable=False),
        sa.Column("facts_id", BIG_ID),
        sa.Column("program_digest", sa.Text(), nullable=False),
        sa.Column("value_ns", sa.Double(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("unfit_because", sa.Text()),
        sa.Column("measured_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(f"verdict IN ({verdicts})", name=op.f("ck_golden_runs_verdict_known")),
        sa.CheckConstraint(
            "(verdict = 'unfit') = (unfit_because IS NOT NULL)", name=op.f("ck_golden_runs_unfit_says_why")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_golden_runs_job_id")),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_golden_runs_device_id")),
        sa.ForeignKeyConstraint(
            ["facts_id"], ["device_facts.facts_id"], name=op.f("fk_golden_runs_facts_id")
        ),
        sa.PrimaryKeyConstraint("golden_id", name=op.f("pk_golden_runs")),
        sa.UniqueConstraint("job_id", name=op.f("uq_golden_runs_job_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_golden_runs_band", "golden_runs", ["band_key", "program_digest", "measured_at"])
    op.create_index("ix_golden_runs_device_id", "golden_runs", ["device_id", "measured_at"])


def _alarms() -> None:
    known = ", ".join(f"'{kind}'" for kind in KINDS)
    op.create_table(
        "alarms",
        sa.Column("alarm_id", BIG_ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("raised_at", sa.BigInteger(), nullable=False),
        sa.Column("cleared_at", sa.BigInteger()),
        sa.Column("cleared_by", sa.Text()),
        sa.Column("told_at", sa.BigInteger()),
        sa.Column("tell_tries", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("tell_again_at", sa.BigInteger()),
        sa.CheckConstraint(f"kind IN ({known})", name=op.f("ck_alarms_kind_known")),
        sa.CheckConstraint(
            "(cleared_at IS NULL) = (cleared_by IS NULL)", name=op.f("ck_alarms_cleared_by_somebody")
        ),
        sa.PrimaryKeyConstraint("alarm_id", name=op.f("pk_alarms")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_alarms_one_open_per_kind",
        "alarms",
        ["kind", "subject", "subject_id"],
        unique=True,
        **only("cleared_at IS NULL"),
    )


def only(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def downgrade() -> None:
    op.drop_index("ix_jobs_checks", table_name="jobs")
    op.drop_index("uq_alarms_one_open_per_kind", table_name="alarms")
    op.drop_table("alarms")
    op.drop_index("ix_golden_runs_device_id", table_name="golden_runs")
    op.drop_index("ix_golden_runs_band", table_name="golden_runs")
    op.drop_table("golden_runs")
    op.execute("DELETE FROM errands WHERE kind NOT IN ('identify', 'clean')")
    _errand_kinds(("identify", "clean"))
    op.drop_column("devices", "setup")
    op.drop_column("devices", "recovery")
    # What was parsed again has no place in the older schema: what counts stays.
    op.execute("DELETE FROM measurements WHERE superseded_at IS NOT NULL OR NOT accepted")
    _unique(BY_PARSER, OF_ATTEMPT, ["attempt_id"])
    # The older schema has no word for it, and it is not to be averaged in.
    op.execute("UPDATE measurements SET quality = 'throttled' WHERE quality IN ('unplugged', 'uncontrolled')")
    op.execute("UPDATE measurements SET quality = 'unproven' WHERE quality = 'withdrawn'")
    _know_qualities(QUALITIES)
    for name in ("superseded_at", "notices", "cpu_s", "control_level", "controls", "placement"):
        op.drop_column("measurements", name)
