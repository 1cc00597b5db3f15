"""Programs become bundles, harnesses may run no model, phones get labels and holds, files may expire."""

import sqlalchemy as sa
from alembic import op
from alembic.operations import BatchOperations

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PLAIN_COMMAND = '["${program}", "${arguments}"]'
QUALITY_WORDS = "quality IN ('valid', 'noisy', 'throttled', 'short', 'fallback'{})"


def upgrade() -> None:
    _artifacts()
    _programs()
    _runs_without_model()
    _measurements()
    _evidence()
    op.add_column("hosts", sa.Column("adb_port", sa.Integer()))
    _devices()
    _errands()


def _artifacts() -> None:
    op.add_column("artifacts", sa.Column("used_at", sa.BigInteger()))
    op.execute("UPDATE artifacts SET used_at = created_at")
    with op.batch_alter_table("artifacts") as batch:
        batch.alter_column("used_at", existing_type=sa.BigInteger(), nullable=False)
        batch.add_column(sa.Column("expired_at", sa.BigInteger()))


def _programs() -> None:
    op.create_table(
        "program_files",
        sa.Column("program_id", BIG_ID, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("executable", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["digest"], ["artifacts.digest"], name=op.f("fk_program_files_digest")),
        sa.ForeignKeyConstraint(
            ["program_id"], ["programs.program_id"], name=op.f("fk_program_files_program_id")
        ),
        sa.PrimaryKeyConstraint("program_id", "path", name=op.f("pk_program_files")),
    )
    op.execute(
        "INSERT INTO program_files (program_id, path, digest, executable)"
        " SELECT program_id, harness, digest, TRUE FROM programs"
    )
    with op.batch_alter_table("programs") as batch:
        batch.drop_constraint(op.f("fk_programs_digest"), type_="foreignkey")
        batch.add_column(sa.Column("entry", sa.Text()))
        batch.add_column(sa.Column("env", sa.JSON()))
        batch.add_column(sa.Column("command", sa.JSON()))
        batch.add_column(sa.Column("definition", sa.JSON()))
        batch.add_column(sa.Column("lacks", sa.JSON()))
        batch.add_column(sa.Column("chosen_at", sa.BigInteger()))
    programs = sa.table(
        "programs",
        *map(sa.column, ("entry", "harness", "env", "command", "lacks", "created_at", "chosen_at")),
    )
    plain = {"env": "{}", "command": PLAIN_COMMAND, "lacks": "[]"}
    op.execute(programs.update().values(entry=programs.c.harness, chosen_at=programs.c.created_at, **plain))
    with op.batch_alter_table("programs") as batch:
        batch.alter_column("entry", existing_type=sa.Text(), nullable=False)
        batch.alter_column("chosen_at", existing_type=sa.BigInteger(), nullable=False)
        for name in plain:
            batch.alter_column(name, existing_type=sa.JSON(), nullable=False)


def _runs_without_model() -> None:
    with op.batch_alter_table("cells") as batch:
        batch.alter_column("variant_id", existing_type=BIG_ID, nullable=True)
    with op.batch_alter_table("series") as batch:
        batch.alter_column("model", existing_type=sa.Text(), nullable=True)
        batch.alter_column("recipe", existing_type=sa.JSON(), nullable=True)
    with op.batch_alter_table("matrices") as batch:
        batch.add_column(sa.Column("rerun_of", BIG_ID))
        batch.create_foreign_key(op.f("fk_matrices_rerun_of"), "matrices", ["rerun_of"], ["matrix_id"])


def _measurements() -> None:
    op.add_column("measurements", sa.Column("metrics", sa.JSON()))
    op.execute("UPDATE measurements SET metrics = '[]'")
    with op.batch_alter_table("measurements") as batch:
        _know_qualities(batch, ", 'unproven', 'coarse'")
        batch.alter_column("metrics", existing_type=sa.JSON(), nullable=False)
        batch.alter_column("variant_digest", existing_type=sa.Text(), nullable=True)


def _know_qualities(batch: BatchOperations, more: str) -> None:
    batch.drop_constraint(op.f("ck_measurements_quality_known"), type_="check")
    batch.create_check_constraint(op.f("ck_measurements_quality_known"), QUALITY_WORDS.format(more))


def _evidence() -> None:
    with op.batch_alter_table("evidence") as batch:
        batch.alter_column("body", existing_type=sa.LargeBinary(), nullable=True)
        batch.add_column(sa.Column("body_bytes", sa.BigInteger()))
        batch.add_column(sa.Column("expired_at", sa.BigInteger()))
        batch.add_column(sa.Column("expired_by", sa.Text()))
        batch.create_check_constraint(
            op.f("ck_evidence_body_until_expired"), "(body IS NULL) = (expired_at IS NOT NULL)"
        )
        batch.create_check_constraint(
            op.f("ck_evidence_expired_by_a_rule"), "(expired_at IS NULL) = (expired_by IS NULL)"
        )
    op.execute("UPDATE evidence SET body_bytes = length(body)")
    with op.batch_alter_table("evidence") as batch:
        batch.alter_column("body_bytes", existing_type=sa.BigInteger(), nullable=False)
    is_kept = sa.text("expired_at IS NULL")
    op.create_index(
        "ix_evidence_kept",
        "evidence",
        ["counted", "received_at", "body_bytes", "expired_at"],
        sqlite_where=is_kept,
        postgresql_where=is_kept,
    )


def _devices() -> None:
    op.add_column("devices", sa.Column("tags", sa.JSON()))
    op.execute("UPDATE devices SET tags = '[]'")
    with op.batch_alter_table("devices") as batch:
        batch.alter_column("tags", existing_type=sa.JSON(), nullable=False)
        batch.add_column(sa.Column("label", sa.Text()))
        batch.add_column(sa.Column("unit", sa.Integer()))
        batch.add_column(sa.Column("held_until", sa.BigInteger()))
        batch.add_column(sa.Column("held_by", sa.Text()))
        batch.create_unique_constraint(op.f("uq_devices_label"), ["label"])
        batch.create_check_constraint(
            op.f("ck_devices_held_by_somebody"), "(held_until IS NULL) = (held_by IS NULL)"
        )


def _errands() -> None:
    op.create_table(
        "errands",
        sa.Column("errand_id", BIG_ID, nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("asked_by", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("done", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("freed_bytes", sa.BigInteger()),
        sa.CheckConstraint("kind IN ('identify', 'clean')", name=op.f("ck_errands_kind_known")),
        sa.CheckConstraint(
            "(finished_at IS NULL AND done IS NULL AND error IS NULL)"
            " OR (finished_at IS NOT NULL AND (done IS NULL) <> (error IS NULL))",
            name=op.f("ck_errands_ends_one_way"),
        ),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_errands_device_id")),
        sa.PrimaryKeyConstraint("errand_id", name=op.f("pk_errands")),
    )
    is_open = sa.text("finished_at IS NULL")
    op.create_index(
        "uq_errands_one_open_per_kind",
        "errands",
        ["device_id", "kind"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )


def downgrade() -> None:
    """Back to programs of one file each; what the first schema cannot say makes it fail, and change nothing."""
    op.drop_table("errands")
    with op.batch_alter_table("devices") as batch:
        batch.drop_constraint(op.f("uq_devices_label"), type_="unique")
        batch.drop_constraint(op.f("ck_devices_held_by_somebody"), type_="check")
        for name in ("tags", "label", "unit", "held_until", "held_by"):
            batch.drop_column(name)
    op.drop_column("hosts", "adb_port")
    op.drop_index("ix_evidence_kept", "evidence")
    with op.batch_alter_table("evidence") as batch:
        batch.drop_constraint(op.f("ck_evidence_body_until_expired"), type_="check")
        batch.drop_constraint(op.f("ck_evidence_expired_by_a_rule"), type_="check")
        batch.drop_column("body_bytes")
        batch.drop_column("expired_by")
        batch.alter_column("body", existing_type=sa.LargeBinary(), nullable=False)
        batch.drop_column("expired_at")
    with op.batch_alter_table("measurements") as batch:
        _know_qualities(batch, "")
        batch.drop_column("metrics")
        batch.alter_column("variant_digest", existing_type=sa.Text(), nullable=False)
    with op.batch_alter_table("matrices") as batch:
        batch.drop_constraint(op.f("fk_matrices_rerun_of"), type_="foreignkey")
        batch.drop_column("rerun_of")
    with op.batch_alter_table("series") as batch:
        batch.alter_column("model", existing_type=sa.Text(), nullable=False)
        batch.alter_column("recipe", existing_type=sa.JSON(), nullable=False)
    with op.batch_alter_table("cells") as batch:
        batch.alter_column("variant_id", existing_type=BIG_ID, nullable=False)
    with op.batch_alter_table("programs") as batch:
        for name in ("entry", "env", "command", "definition", "lacks", "chosen_at"):
            batch.drop_column(name)
        batch.create_foreign_key(op.f("fk_programs_digest"), "artifacts", ["digest"], ["digest"])
    op.drop_table("program_files")
    with op.batch_alter_table("artifacts") as batch:
        batch.drop_column("used_at")
        batch.drop_column("expired_at")
